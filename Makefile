# The front door. What each target does is in scripts/ and test/run; the build itself is meson's (meson.build).
# On Debian every target first installs what is missing (scripts/deps), says what, and asks nothing.
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory
.PHONY: help run build test test-quick test-cluster test-peers soak coverage fuzz bench lint image clean

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1|\2/p' Makefile | awk -F'|' '{ printf "%-20s%s\n", $$1, $$2 }'

run: ## install what is missing, build, start the embedded engine and carry out two requests on it
	@scripts/deps build
	@scripts/build programs
	@scripts/demo

build: ## build the programs into build/
	@scripts/deps build
	@scripts/build programs

test: ## everything that needs neither Kubernetes nor Go: 6 minutes once built; NAME=page for one
	@scripts/deps build test image
	@scripts/build tools asan
	@scripts/npm
	@test/run --tier test $(NAME)

test-quick: ## unit tests without sanitizers, and the source itself: under 20 s
	@scripts/deps build test
	@scripts/build plain
	@test/run --tier quick

test-cluster: ## on real Kubernetes, which is built once (needs Go): 15 minutes; NAME=installed for one
	@scripts/deps build test cluster image
	@scripts/build tools asan
	@scripts/npm
	@test/cluster/cluster build
	@test/run --tier cluster $(NAME)

test-peers: ## with other people's frameworks, servers and tools; NAME=ml-xgboost for one
	@scripts/deps build test image peers
	@scripts/build tools asan
	@test/run --tier peers $(NAME)

soak: ## every test in its long form, in plain and sanitized builds, and fuzzers for 10 minutes each: hours
	@scripts/deps build test cluster image peers
	@scripts/build plain asan fuzz
	@scripts/npm
	@test/cluster/cluster build
	@test/run --tier soak

coverage: ## which lines of src/ the tests reach, by layer; TIER=cluster for those of another tier
	@scripts/deps build test image $(if $(filter cluster soak,$(TIER)),cluster)
	@scripts/build coverage
	@scripts/npm
	@scripts/coverage $(or $(TIER),test) $(NAME)

fuzz: ## fuzz for TIME=60 seconds each; NAME=json for one, MERGE=1 to keep new corpus files
	@scripts/deps build test
	@scripts/build fuzz
	@MERGE=$(MERGE) scripts/fuzz $(or $(TIME),60) $(NAME)

bench: ## measure, with peers side by side; NAME=json for one
	@scripts/deps build bench $(if $(wildcard bench/$(NAME).c),,cluster)
	@scripts/build plain
	@$(if $(wildcard bench/$(NAME).c),,test/cluster/cluster build)
	@scripts/bench $(NAME)

lint: ## formatter, clang-tidy, cppcheck, shellcheck
	@scripts/deps build test lint
	@scripts/lint

image: ## the images as archives in build/images, each with its SBOM (no Docker needed); NAME=sonde-pod for one
	@scripts/deps build image
	@scripts/build programs
	@scripts/images $(NAME)

clean: ## remove build/
	@rm -rf build
