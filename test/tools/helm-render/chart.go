package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"text/template"

	"github.com/Masterminds/sprig"
	"sigs.k8s.io/yaml"
)

type chart struct {
	name           string
	about          tree // Chart.yaml, with its names as templates have them
	values, schema []byte
	templates      map[string]string // by path in the chart
	files          files
}

type object struct {
	template, kind, text string
}

// Helm's order of installation, as far as there are such objects here.
var order = []string{"Namespace", "NetworkPolicy", "ResourceQuota", "LimitRange", "PodDisruptionBudget", "ServiceAccount", "Secret",
	"ConfigMap", "PersistentVolumeClaim", "CustomResourceDefinition", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding",
	"Service", "Deployment", "HorizontalPodAutoscaler"}

func (o object) rank() int {
	for i, kind := range order {
		if kind == o.kind {
			return i
		}
	}
	return len(order)
}

func contains(all []string, one string) bool {
	for _, s := range all {
		if s == one {
			return true
		}
	}
	return false
}

// files is .Files of a template.
type files map[string]string

func (f files) Get(name string) string { return f[name] }

func (f files) Glob(pattern string) files {
	found := files{}
	for name, text := range f {
		if ok, _ := filepath.Match(pattern, name); ok {
			found[name] = text
		}
	}
	return found
}

// versions is .Capabilities.APIVersions.
type versions []string

func (v versions) Has(one string) bool { return contains(v, one) }

func readTree(top string) (map[string]string, error) {
	found := map[string]string{}
	var walk func(folder, name string) error
	walk = func(folder, name string) error {
		entries, err := os.ReadDir(folder) // Walk would not follow links to folders, which Helm does
		if err != nil {
			return err
		}
		for _, entry := range entries {
			path, inside := filepath.Join(folder, entry.Name()), filepath.Join(name, entry.Name())
			about, err := os.Stat(path)
			if err != nil {
				return err
			}
			if about.IsDir() {
				if err := walk(path, inside); err != nil {
					return err
				}
				continue
			}
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			found[inside] = string(text)
		}
		return nil
	}
	return found, walk(top, "")
}

func loadChart(folder string) (*chart, error) {
	all, err := readTree(folder)
	if err != nil {
		return nil, err
	}
	c := &chart{templates: map[string]string{}, files: files{}, about: tree{}}
	for name, text := range all {
		switch {
		case strings.HasPrefix(name, "templates/"):
			c.templates[name] = text
		case name == "values.yaml":
			c.values = []byte(text)
		case name == "values.schema.json":
			c.schema = []byte(text)
		default:
			c.files[name] = text
		}
	}
	raw := tree{}
	if err := yaml.Unmarshal([]byte(all["Chart.yaml"]), &raw); err != nil {
		return nil, fmt.Errorf("Chart.yaml: %v", err)
	}
	for key, value := range raw {
		c.about[strings.ToUpper(key[:1])+key[1:]] = value
	}
	c.name = fmt.Sprint(raw["name"])
	return c, nil
}

func toYaml(v interface{}) string {
	text, err := yaml.Marshal(v)
	if err != nil {
		return ""
	}
	return strings.TrimSuffix(string(text), "\n")
}

func fromYaml(text string) tree {
	v := tree{}
	if err := yaml.Unmarshal([]byte(text), &v); err != nil {
		v["Error"] = err.Error()
	}
	return v
}

func required(message string, v interface{}) (interface{}, error) {
	if v == nil || v == "" {
		return nil, fmt.Errorf("%s", message)
	}
	return v, nil
}

func functions(all *template.Template) template.FuncMap {
	f := sprig.TxtFuncMap()
	f["toYaml"], f["fromYaml"], f["required"] = toYaml, fromYaml, required
	f["include"] = func(name string, data interface{}) (string, error) {
		var out bytes.Buffer
		err := all.ExecuteTemplate(&out, name, data)
		return out.String(), err
	}
	return f
}

func (c *chart) render(values tree, o options) ([]object, error) {
	all := template.New("chart").Option("missingkey=zero")
	all.Funcs(functions(all))
	var names []string
	for name, text := range c.templates {
		if _, err := all.New(name).Parse(text); err != nil {
			return nil, err
		}
		if !strings.HasPrefix(filepath.Base(name), "_") {
			names = append(names, name)
		}
	}
	sort.Strings(names)
	var objects []object
	for _, name := range names {
		var out bytes.Buffer
		data := tree{"Values": values, "Chart": c.about, "Files": c.files,
			"Release":      tree{"Name": o.name, "Namespace": o.namespace, "Service": "Helm"},
			"Capabilities": tree{"APIVersions": versions(o.versions)},
			"Template":     tree{"Name": c.name + "/" + name}}
		if err := all.ExecuteTemplate(&out, name, data); err != nil {
			return nil, err
		}
		made, err := split(name, strings.ReplaceAll(out.String(), "<no value>", ""))
		if err != nil {
			return nil, err
		}
		objects = append(objects, made...)
	}
	return objects, nil
}

// split cuts what a template made into its documents; those without an object are left out.
func split(name, text string) ([]object, error) {
	var objects []object
	for _, part := range strings.Split("\n"+text, "\n---") {
		head := tree{}
		if err := yaml.Unmarshal([]byte(part), &head); err != nil {
			return nil, fmt.Errorf("%s: %v in\n%s", name, err, part)
		}
		if len(head) > 0 {
			objects = append(objects, object{name, fmt.Sprint(head["kind"]), strings.Trim(part, "\n")})
		}
	}
	return objects, nil
}
