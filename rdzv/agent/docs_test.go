package agent

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode"

	"rdzv/internal/pagetest"
	"rdzv/rdzv"
)

// everyEvent has the zero value of each type of event, in their order in the reference.
var everyEvent = []Event{
	Placed{}, FlagIgnored{}, Unprotected{}, TokenCreated{}, Searching{}, NoPeerYet{}, DifferentToken{},
	DifferentVersion{}, DifferentCommand{}, DifferentStore{},
	RanksMissing{}, NoMulticast{}, StoreFound{}, Waiting{}, WorldAgreed{}, NodesDiffer{},
	EnvironmentNote{},
	WorkerStarted{}, WorkerExited{}, InitProgress{}, Stragglers{}, Stalled{}, JobEnded{},
	AttemptFailed{Verdict: &rdzv.Verdict{}}, Restarting{},
	Settling{},
	DumpingStacks{}, LogLost{}, OutputLost{}, FailureReported{}, Diagnostic{}, Finished{},
}

func TestEveryEvent(t *testing.T) {
	types, listed := map[string]bool{}, map[string]bool{}
	var decls []ast.Decl
	for _, name := range []string{"event.go", "eventattempt.go", "eventend.go"} {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		decls = append(decls, file.Decls...)
	}
	for _, d := range decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Name.Name == "Type" {
			types[f.Recv.List[0].Type.(*ast.Ident).Name] = true
		}
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.TYPE {
			continue
		}
		for _, spec := range g.Specs { // of another package, such as rdzv.Waiting
			if s := spec.(*ast.TypeSpec); s.Assign.IsValid() {
				types[s.Name.Name] = true
			}
		}
	}
	for _, e := range everyEvent {
		listed[reflect.TypeOf(e).Name()] = true
	}
	if !maps.Equal(types, listed) {
		t.Errorf("the files have the events %v\neveryEvent has %v", types, listed)
	}
}

// The reference of events is made of the Go types: their comments, the fields of their JSON form with
// their comments, and the lines of testdata/events.jsonl.
func TestGeneratedEvents(t *testing.T) {
	s := sources{}
	examples := exampleLines(t)
	page := fmt.Sprintf("The version of the schema is %d.\n", SchemaVersion)
	for _, e := range everyEvent {
		form := reflect.TypeOf(inWords(e))
		page += "\n## " + e.Type() + "\n\n" + s.eventDoc(t, e) + "\n\n"
		lines := ""
		for _, f := range fields(form, "") {
			lines += s.fieldLine(t, f)
		}
		if lines != "" {
			page += lines + "\n"
		}
		shown := 0
		for _, line := range examples {
			if strings.Contains(line, `"type":"`+e.Type()+`"`) {
				checkExample(t, e.Type(), form, line)
				page += "    " + line + "\n"
				shown++
			}
		}
		if shown == 0 {
			t.Errorf("testdata/events.jsonl has no example of %s", e.Type())
		}
	}
	if strings.Contains(page, "Config") {
		t.Errorf("the comment of an event names a field of Config, which readers of the page do not know")
	}
	pagetest.Part(t, "../../docs/reference/events.md", "events", page)
}

func exampleLines(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile("testdata/events.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(text)), "\n")
}

// sources are the comments of the types in directories of this module, and of their fields
// ("Type.Field").
type sources map[string]map[string]string

func (s sources) comment(t *testing.T, of reflect.Type, field string) string {
	t.Helper()
	module := strings.TrimSuffix(reflect.TypeFor[Placed]().PkgPath(), "rdzv/agent")
	dir := filepath.Join("../..", strings.TrimPrefix(of.PkgPath(), module))
	if s[dir] == nil {
		s[dir] = commentsIn(t, dir)
	}
	name := of.Name()
	if isVerdict(of) && field != "Words" {
		name = "Verdict"
	}
	if field != "" {
		name += "." + field
	}
	return strings.TrimSpace(s[dir][name])
}

func commentsIn(t *testing.T, dir string) map[string]string {
	t.Helper()
	comments := map[string]string{}
	files, err := filepath.Glob(dir + "/*.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("no sources in %s: %v", dir, err)
	}
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			if g, ok := d.(*ast.GenDecl); ok && g.Tok == token.TYPE {
				addComments(comments, g)
			}
		}
	}
	return comments
}

func addComments(comments map[string]string, g *ast.GenDecl) {
	for _, spec := range g.Specs {
		spec := spec.(*ast.TypeSpec)
		comments[spec.Name.Name] = g.Doc.Text()
		of, ok := spec.Type.(*ast.StructType)
		if !ok {
			continue
		}
		for _, f := range of.Fields.List {
			for _, name := range f.Names {
				comments[spec.Name.Name+"."+name.Name] = f.Doc.Text() + f.Comment.Text()
			}
		}
	}
}

var (
	goLink  = regexp.MustCompile(`\[(\w+)\]`)
	goEvent = regexp.MustCompile(`\b[A-Z][a-z]+[A-Z]\w+\b`)
)

// eventDoc is the comment of an event's type, with the names of events in their JSON form.
func (s sources) eventDoc(t *testing.T, e Event) string {
	t.Helper()
	name := reflect.TypeOf(e).Name()
	doc := s.comment(t, reflect.TypeOf(e), "")
	if rest, ok := strings.CutPrefix(doc, name+" says that "); ok {
		letters := []rune(rest)
		doc = string(unicode.ToUpper(letters[0])) + string(letters[1:])
	} else if rest, ok := strings.CutPrefix(doc, name+" "); ok {
		doc = "This event " + rest
	} else {
		t.Errorf("the comment of %s does not begin with its name", name)
	}
	types := map[string]string{}
	for _, e := range everyEvent {
		types[reflect.TypeOf(e).Name()] = "`" + e.Type() + "`"
	}
	inJSON := func(word string) string {
		if name, ok := types[strings.Trim(word, "[]")]; ok {
			return name
		}
		return goLink.ReplaceAllString(word, "`$1`")
	}
	return goEvent.ReplaceAllStringFunc(goLink.ReplaceAllStringFunc(doc, inJSON), inJSON)
}

// fieldLine is an item of a list about one field.
func (s sources) fieldLine(t *testing.T, f jsonField) string {
	t.Helper()
	comment := strings.Join(strings.Fields(s.comment(t, f.of, f.name)), " ")
	if comment == "" {
		t.Errorf("%s.%s, which is %q in events, has no comment", f.of, f.name, f.path)
	}
	optional := ""
	if f.optional {
		optional = "optional: "
	}
	return fmt.Sprintf("* `%s`: %s%s\n", f.path, optional, comment)
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
	if err := json.Unmarshal(line.Event, value.Interface()); err != nil {
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

// jsonField is a field in the JSON form of an event.
type jsonField struct {
	path     string // "a", "a.b", "a[].b"
	of       reflect.Type
	name     string // in Go
	optional bool
}

// isVerdict tells whether a type is that of verdicts, or one that its JSON form is made of.
func isVerdict(of reflect.Type) bool {
	told := reflect.TypeFor[rdzv.ToldVerdict]()
	return of == reflect.TypeFor[rdzv.Verdict]() || of == told || of == told.Field(2).Type
}

// fields are those of a type, by their tags.
func fields(of reflect.Type, prefix string) (all []jsonField) {
	module := strings.TrimSuffix(reflect.TypeFor[Placed]().PkgPath(), "rdzv/agent")
	for _, f := range reflect.VisibleFields(of) {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous || name == "-" {
			continue
		}
		if name == "" {
			name = "(" + f.Name + " has no tag)"
		}
		owner := of
		for _, i := range f.Index[:len(f.Index)-1] {
			owner = owner.Field(i).Type
		}
		if of == reflect.TypeFor[attemptWords]() && isVerdict(owner) {
			continue // the comment of AttemptFailed names them
		}
		all = append(all, jsonField{prefix + name, owner, f.Name, options == "omitempty" || options == "omitzero"})
		inner, below := f.Type, prefix+name+"."
		for inner.Kind() == reflect.Pointer || inner.Kind() == reflect.Slice {
			if inner.Kind() == reflect.Slice {
				below = prefix + name + "[]."
			}
			inner = inner.Elem()
		}
		if isVerdict(inner) {
			inner = reflect.TypeFor[rdzv.ToldVerdict]()
		}
		if inner.Kind() == reflect.Struct && strings.HasPrefix(inner.PkgPath(), module) {
			all = append(all, fields(inner, below)...)
		}
	}
	return all
}
