# The front door. What each target does is in scripts/ and test/run; the build itself is meson's (meson.build).
# On Debian 12 every target first installs what is missing (scripts/deps), says what, and asks nothing.
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory
.PHONY: help run build test test-quick soak fuzz bench lint image clean

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1|\2/p' Makefile | awk -F'|' '{ printf "%-18s%s\n", $$1, $$2 }'

run: ## install what is missing, build, start the embedded engine and carry out two requests on it
	@scripts/deps build
	@scripts/build programs
	@scripts/demo

build: ## build the programs into build/
	@scripts/deps build
	@scripts/build programs

test: ## all tests: unit, structure, fuzzers for 5 s each, those on a real control plane and its node; NAME=installed for one
	@scripts/deps build test cluster image
	@scripts/build plain asan fuzz
	@scripts/npm
	@test/cluster/cluster build
	@test/run --level cluster $(NAME)

test-quick: ## the tests without a control plane, in under 20 s
	@scripts/deps build test
	@scripts/build plain asan
	@test/run --level quick

soak: ## all tests in their long forms: 1 000 fault schedules, 10 minutes of churn, 10 minutes a fuzzer
	@scripts/deps build test cluster image
	@scripts/build plain asan fuzz
	@scripts/npm
	@test/cluster/cluster build
	@SONDE_SOAK=1 test/run --level soak

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
