package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/xeipuuv/gojsonschema"
	"sigs.k8s.io/yaml"
)

type tree = map[string]interface{}

// merge lays MORE over INTO; null takes a value away, as Helm has it.
func merge(into, more tree) {
	for key, value := range more {
		from, isTree := value.(tree)
		to, wasTree := into[key].(tree)
		switch {
		case value == nil:
			delete(into, key)
		case isTree && wasTree:
			merge(to, from)
		default:
			into[key] = value
		}
	}
}

// setValue reads A.B=VALUE; VALUE is YAML, so that numbers, words and lists can be given.
func setValue(values tree, text string) error {
	parts := strings.SplitN(text, "=", 2)
	if len(parts) != 2 {
		return fmt.Errorf("--set %s: A.B=VALUE is wanted", text)
	}
	var value interface{}
	if err := yaml.Unmarshal([]byte(parts[1]), &value); err != nil {
		return fmt.Errorf("--set %s: %v", text, err)
	}
	names := strings.Split(parts[0], ".")
	more := tree{names[len(names)-1]: value}
	for i := len(names) - 2; i >= 0; i-- {
		more = tree{names[i]: more}
	}
	merge(values, more)
	return nil
}

func mergeValues(defaults []byte, files, set []string) (tree, error) {
	values := tree{}
	if err := yaml.Unmarshal(defaults, &values); err != nil {
		return nil, fmt.Errorf("values.yaml: %v", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		more := tree{}
		if err := yaml.Unmarshal(text, &more); err != nil {
			return nil, fmt.Errorf("%s: %v", file, err)
		}
		merge(values, more)
	}
	for _, text := range set {
		if err := setValue(values, text); err != nil {
			return nil, err
		}
	}
	return values, nil
}

func checkValues(schema []byte, values tree) error {
	result, err := gojsonschema.Validate(gojsonschema.NewBytesLoader(schema), gojsonschema.NewGoLoader(values))
	if err != nil {
		return fmt.Errorf("values.schema.json: %v", err)
	}
	if result.Valid() {
		return nil
	}
	var wrong []string
	for _, e := range result.Errors() {
		wrong = append(wrong, "- "+e.String())
	}
	return fmt.Errorf("values don't meet the specifications of the schema:\n%s", strings.Join(wrong, "\n"))
}
