package agent

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// everyEvent has the zero value of each type of event.go.
var everyEvent = []Event{
	Placed{}, FlagIgnored{}, Unprotected{}, TokenCreated{}, Searching{}, Alone{}, DifferentToken{},
	DifferentVersion{}, DifferentCommand{}, DifferentStore{}, DifferentNodes{},
	RanksMissing{}, NoMulticast{}, StoreFound{}, Waiting{}, WorldAgreed{}, NodesDiffer{},
	EnvironmentNote{},
	WorkerStarted{}, WorkerExited{}, InitProgress{}, Stragglers{}, Stalled{}, JobEnded{}, AttemptFailed{}, Restarting{},
	Settling{},
	DumpingStacks{}, LogLost{}, OutputLost{}, FailureReported{}, Diagnostic{}, Finished{},
}

func TestEveryEvent(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "event.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var types []string
	for _, d := range file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Name.Name == "Type" {
			types = append(types, f.Recv.List[0].Type.(*ast.Ident).Name)
		}
	}
	var listed []string
	for _, e := range everyEvent {
		listed = append(listed, reflect.TypeOf(e).Name())
	}
	slices.Sort(types)
	slices.Sort(listed)
	if !slices.Equal(types, listed) {
		t.Errorf("event.go has the events %q\neveryEvent has %q", types, listed)
	}
}

// documented is what docs/events.md has about one event.
type documented struct {
	fields   []string
	examples []string
}

var row = regexp.MustCompile("(?m)^\\| `([^`]+)` \\|")

// readDocs reads docs/events.md: a heading, a table of fields and examples for each event.
func readDocs(t *testing.T) map[string]documented {
	t.Helper()
	text, err := os.ReadFile("../../docs/events.md")
	if err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("| `v` | schema version: %d.", SchemaVersion)
	if !strings.Contains(string(text), want) {
		t.Errorf("docs/events.md does not have %q", want)
	}
	docs := map[string]documented{}
	for _, section := range strings.Split(string(text), "\n### ")[1:] {
		name, rest, _ := strings.Cut(section, "\n")
		rest, _, _ = strings.Cut(rest, "\n## ")
		d := docs[name]
		for _, match := range row.FindAllStringSubmatch(rest, -1) {
			d.fields = append(d.fields, match[1])
		}
		for line := range strings.Lines(rest) {
			if example, ok := strings.CutPrefix(line, "    {"); ok {
				d.examples = append(d.examples, "{"+strings.TrimSpace(example))
			}
		}
		docs[name] = d
	}
	return docs
}

// docs/events.md has every event with all of its fields, and examples in its JSON form.
func TestEventsAreDocumented(t *testing.T) {
	docs := readDocs(t)
	for _, e := range everyEvent {
		form := reflect.TypeOf(jsonForm(e))
		d, ok := docs[e.Type()]
		if !ok {
			t.Errorf("docs/events.md does not have the event %s", e.Type())
			continue
		}
		delete(docs, e.Type())
		got := slices.Sorted(slices.Values(d.fields))
		want := slices.Sorted(slices.Values(fields(form, "")))
		if !slices.Equal(got, want) {
			t.Errorf("%s: docs/events.md has the fields %q\nthe JSON form %q", e.Type(), got, want)
		}
		if len(d.examples) == 0 {
			t.Errorf("docs/events.md has no example of %s", e.Type())
		}
		for _, example := range d.examples {
			checkExample(t, e.Type(), form, example)
		}
	}
	for name := range docs {
		t.Errorf("docs/events.md has the event %s, which does not exist", name)
	}
}

// checkExample decodes an example and encodes it again.
func checkExample(t *testing.T, name string, form reflect.Type, example string) {
	t.Helper()
	var line struct {
		Version int             `json:"v"`
		Time    time.Time       `json:"time"`
		Type    string          `json:"type"`
		Event   json.RawMessage `json:"event"`
	}
	if err := decodeStrictly([]byte(example), &line); err != nil {
		t.Errorf("%s: %v in %s", name, err, example)
		return
	}
	value := reflect.New(form)
	if err := decodeStrictly(line.Event, value.Interface()); err != nil {
		t.Errorf("%s: %v in %s", name, err, example)
	}
	line.Event, _ = json.Marshal(value.Interface())
	var again bytes.Buffer
	encoder := json.NewEncoder(&again)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(line); err != nil || strings.TrimSpace(again.String()) != example {
		t.Errorf("%s: the example is\n%s\ndecoded and encoded again it is\n%s, %v",
			name, example, &again, err)
	}
	if line.Type != name || line.Version != SchemaVersion || line.Time.IsZero() {
		t.Errorf("%s: the example has type %q, version %d, time %v; want version %d and a time",
			name, line.Type, line.Version, line.Time, SchemaVersion)
	}
}

func decodeStrictly(text []byte, to any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	return d.Decode(to)
}

// fields are the names in the JSON form of a type, by their tags: "a", "a.b", "a[].b".
func fields(of reflect.Type, prefix string) (names []string) {
	module := strings.TrimSuffix(reflect.TypeFor[Placed]().PkgPath(), "rdzv/agent")
	for f := range allFields(of) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "-" {
			continue
		}
		if name == "" {
			name = "(" + f.Name + " has no tag)"
		}
		names = append(names, prefix+name)
		inner, below := f.Type, prefix+name+"."
		for inner.Kind() == reflect.Pointer || inner.Kind() == reflect.Slice {
			if inner.Kind() == reflect.Slice {
				below = prefix + name + "[]."
			}
			inner = inner.Elem()
		}
		if inner.Kind() == reflect.Struct && strings.HasPrefix(inner.PkgPath(), module) {
			names = append(names, fields(inner, below)...)
		}
	}
	return names
}

// allFields are the fields of a type, with those of embedded structs in their place.
func allFields(of reflect.Type) func(yield func(reflect.StructField) bool) {
	return func(yield func(reflect.StructField) bool) {
		for i := range of.NumField() {
			f := of.Field(i)
			if !f.Anonymous {
				if !yield(f) {
					return
				}
				continue
			}
			for inner := range allFields(f.Type) {
				if !yield(inner) {
					return
				}
			}
		}
	}
}
