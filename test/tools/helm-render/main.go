// helm-render - what `helm template` does, as far as deploy/chart needs it: values merged and checked against the chart's
// schema, templates with sprig's functions, objects in Helm's order of installation.
//
//	helm-render CHART [--name RELEASE] [--namespace NS] [--values FILE]... [--set A.B=VALUE]... [--api-versions V]...
//	            [--show-only templates/FILE]...
//
// Helm is in none of Debian's archives, so the tests and scripts/manifests render with this. It is made of the same
// libraries as Helm itself: sprig, sigs.k8s.io/yaml, gojsonschema.
package main

import (
	"flag"
	"fmt"
	"os"
	"sort"
	"strings"
)

type list []string

func (l *list) String() string     { return strings.Join(*l, ",") }
func (l *list) Set(s string) error { *l = append(*l, s); return nil }

type options struct {
	name, namespace              string
	values, set, versions, shown list
}

func run(chart string, o options) error {
	c, err := loadChart(chart)
	if err != nil {
		return err
	}
	values, err := mergeValues(c.values, o.values, o.set)
	if err != nil {
		return err
	}
	if err := checkValues(c.schema, values); err != nil {
		return err
	}
	objects, err := c.render(values, o)
	if err != nil {
		return err
	}
	sort.SliceStable(objects, func(i, j int) bool { return objects[i].rank() < objects[j].rank() })
	for _, object := range objects {
		if len(o.shown) == 0 || contains(o.shown, object.template) {
			fmt.Printf("---\n# Source: %s/%s\n%s\n", c.name, object.template, object.text)
		}
	}
	return nil
}

func main() {
	var o options
	flag.StringVar(&o.name, "name", "sonde", "the release's name")
	flag.StringVar(&o.namespace, "namespace", "default", "the release's namespace")
	flag.Var(&o.values, "values", "a file with values; may be repeated")
	flag.Var(&o.set, "set", "one value, A.B=VALUE, the value as YAML; may be repeated")
	flag.Var(&o.versions, "api-versions", "what the cluster serves: policy/v1; may be repeated")
	flag.Var(&o.shown, "show-only", "only what this template makes; may be repeated")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "helm-render: one chart is wanted, after the options")
		os.Exit(2)
	}
	if err := run(flag.Arg(0), o); err != nil {
		fmt.Fprintln(os.Stderr, "helm-render:", err)
		os.Exit(1)
	}
}
