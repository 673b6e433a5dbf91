package envmap

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestParseExports(t *testing.T) {
	const (
		notName     = "not a variable's name"
		ownOfWorker = "each worker has its own"
		ofRdzv      = "variables of rdzv are not passed to workers"
		ofLauncher  = "it is a variable of the launcher"
		ofSrun      = "it is a word of srun, not the name of a variable"
		inFull      = "such variables must be named in full"
	)
	for text, want := range map[string]string{
		"A":                      "A",
		"A,NCCL_*,B=1":           "A NCCL_* B=1",
		"A=eth0,eth1":            "A=eth0,eth1",
		"A=":                     "A=",
		"A=b=c":                  "A=b=c",
		"A=x,y z=1":              "A=x,y z=1",
		"OMPI_ALLOW_RUN_AS_ROOT": "OMPI_ALLOW_RUN_AS_ROOT",
		"PATH,LD_LIBRARY_PATH":   "PATH LD_LIBRARY_PATH",
		"CUDA_VISIBLE_DEVICES=0": "CUDA_VISIBLE_DEVICES=0",
		"A=1,B=2":                `error: cannot export "A": its value contains ",B="`,
		"":                       `error: cannot export "": ` + notName,
		"A,":                     `error: cannot export "": ` + notName,
		"=1":                     `error: cannot export "": ` + notName,
		"A B":                    `error: cannot export "A B": ` + notName,
		"1A=secret":              `error: cannot export "1A": ` + notName,
		"A*B":                    `error: cannot export "A*B": ` + notName,
		"A*=secret":              `error: cannot export "A*": ` + notName,
		"A=secret\x00":           `error: cannot export "A": its value contains a NUL byte`,
		"*":                      `error: cannot export "*": it has no prefix`,
		"RANK":                   `error: cannot export "RANK": ` + ownOfWorker,
		"MASTER_ADDR=secret":     `error: cannot export "MASTER_ADDR": ` + ownOfWorker,
		"TORCHELASTIC_RESTART_*": `error: cannot export "TORCHELASTIC_RESTART_*": ` + ownOfWorker,
		"RDZV_TOKEN":             `error: cannot export "RDZV_TOKEN": ` + ofRdzv,
		"RDZV_*":                 `error: cannot export "RDZV_*": ` + ofRdzv,
		"OMPI_COMM_WORLD_RANK":   `error: cannot export "OMPI_COMM_WORLD_RANK": ` + ofLauncher,
		"SLURM_*":                `error: cannot export "SLURM_*": ` + ofLauncher,
		"ALL":                    `error: cannot export "ALL": ` + ofSrun,
		"ALL,B=1":                `error: cannot export "ALL": ` + ofSrun,
		"B,NONE":                 `error: cannot export "NONE": ` + ofSrun,
		"NIL":                    `error: cannot export "NIL": ` + ofSrun,
		"ALL=1,2":                "ALL=1,2",
		"ALL*":                   "ALL*",
		"LD_*":                   `error: cannot export "LD_*": ` + inFull,
		"OMPI_MCA_btl":           `error: cannot export "OMPI_MCA_btl": ` + ofLauncher,
	} {
		if got := shownExports(ParseExports([]string{text})); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
	if got := shownExports(ParseExports([]string{"A=1,2", "B"})); got != "A=1,2 B" {
		t.Errorf("two texts: %s", got)
	}
}

func TestParseExportFile(t *testing.T) {
	for text, want := range map[string]string{
		"":                           "",
		"A=1":                        "A=1",
		"# a comment\n\n  A=1\r\nB=": "A=1 B=",
		"A= 1 # no comment \n":       "A= 1 # no comment ",
		"A=x,B=2\nC=\\n$HOME":        "A=x,B=2 C=\\n$HOME",
		"A=\"":                       "A=\"",
		"A='x'y":                     "A='x'y",
		"A=1\nA=2":                   "A=1 A=2",
		"A=1\n\nB":                   "error: line 3: not NAME=VALUE",
		"export A=1":                 "error: line 1: not NAME=VALUE",
		"c2Vj+mV0Cg==":               "error: line 1: not NAME=VALUE",
		"NCCL_*=1":                   "error: line 1: not NAME=VALUE",
		"A=\"secret\"":               `error: line 1: the value of "A" is in quotes`,
		"B=\nA='secret'\r\n":         `error: line 2: the value of "A" is in quotes`,
		"RANK=1":                     `error: line 1: cannot export "RANK": each worker has its own`,
		"A=secret\x00":               `error: line 1: cannot export "A": its value contains a NUL byte`,
	} {
		if got := shownExports(ParseExportFile(text)); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

func shownExports(exports []Export, err error) string {
	if err != nil {
		return "error: " + err.Error()
	}
	var texts []string
	for _, e := range exports {
		text := e.String()
		if e.Given {
			text += "=" + e.Value
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, " ")
}

func TestExported(t *testing.T) {
	env := Env{
		"A": "1", "AB": "2", "NCCL_DEBUG": "INFO", "NCCL_ALGO": "", "PATH": "/bin",
		"PALS_RANKID": "3", "PYTHONPATH": "/p", "HOME": "/h",
		"CUDA_VISIBLE_DEVICES": "4", "CUDA_CACHE_PATH": "/c",
	}
	for _, row := range []struct{ exports, want, none string }{
		{"A", "A=1", ""},
		{"A*", "A=1 AB=2", ""},
		{"NCCL_*", "NCCL_ALGO= NCCL_DEBUG=INFO", ""},
		{"P*", "PYTHONPATH=/p", ""},
		{"PATH", "PATH=/bin", ""},
		{"H*,HOME", "HOME=/h", "H*"},
		{"CUDA_*", "CUDA_CACHE_PATH=/c", ""},
		{"CUDA_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES=4", ""},
		{"B,X_*", "", "X_* B"},
		{"A=7,8", "A=7,8", ""},
		{"B=", "B=", ""},
		{"A=9", "A=9", ""},
	} {
		exports, err := ParseExports([]string{row.exports})
		if err != nil {
			t.Fatal(err)
		}
		variables, none, err := Exported(env, exports)
		if got := strings.Join(variables, " "); err != nil || got != row.want {
			t.Errorf("%s: %q, %v; want %q", row.exports, got, err, row.want)
		}
		if got := shownExports(none, nil); got != row.none {
			t.Errorf("%s: none for %q, want %q", row.exports, got, row.none)
		}
	}
	exports, _ := ParseExports([]string{"A=8", "A=9", "A*"})
	variables, _, _ := Exported(env, exports)
	if !slices.Equal(variables, []string{"A=9", "AB=2"}) {
		t.Errorf("two values and a prefix: %q", variables)
	}
	exports, _ = ParseExports([]string{"A=8", "A"})
	if variables, _, _ := Exported(env, exports); !slices.Equal(variables, []string{"A=1"}) {
		t.Errorf("a value and a name: %q", variables)
	}
}

func TestMaxExported(t *testing.T) {
	for size, want := range map[int]string{
		MaxExported:     "",
		MaxExported + 1: "cannot export variables of 131073 bytes: at most 131072 are allowed",
	} {
		value := strings.Repeat("x", size-len("A=\x00"))
		variables, _, err := Exported(nil, []Export{{Name: "A", Given: true, Value: value}})
		got := ""
		if err != nil {
			got = err.Error()
		}
		if got != want || err == nil && len(variables) != 1 {
			t.Errorf("%d bytes: %d variables, error %q; want %q", size, len(variables), got, want)
		}
	}
}

func TestOverride(t *testing.T) {
	result, replaced := Override([]string{"A=1", "B=2", "C=3"}, []string{"B=2", "C=4", "D=5"})
	want := []string{"A=1", "B=2", "C=4", "D=5"}
	if !slices.Equal(result, want) || !slices.Equal(replaced, []string{"C"}) {
		t.Errorf("%q, replaced %q", result, replaced)
	}
}

// Every variable of a worker's identity is refused.
func TestIdentityIsNotExported(t *testing.T) {
	id := Identity{WorldSize: 1, LocalWorldSize: 1, Nodes: 1, ErrorFile: "/f"}
	w := &worker{}
	w.identity(id, device{index: 0})
	for _, kv := range w.Set {
		if unexportable(kv.Name) == "" {
			t.Errorf("%s can be exported", kv.Name)
		}
	}
	if len(w.Set) < 20 {
		t.Errorf("the identity has only %d variables", len(w.Set))
	}
}

// No pattern copies what identifies a task: with all that patterns select from another task's
// environment, a task is still recognised as what it is.
func TestPatternsKeepThePlacement(t *testing.T) {
	files, _ := filepath.Glob("testdata/*-rank1.env")
	if len(files) < 10 {
		t.Fatalf("only %d environments", len(files))
	}
	var all []Export
	for c := 'A'; c <= 'Z'; c++ {
		all = append(all, Export{Name: string(c), Prefix: true})
	}
	for _, file := range files {
		own := readEnviron(t, file)
		other := readEnviron(t, strings.Replace(file, "-rank1", "-rank0", 1))
		exported, _, err := Exported(ParseEnv(other), all)
		if err != nil {
			t.Fatal(err)
		}
		mixed, _ := Override(own, exported)
		want, errWant := Detect(ParseEnv(own), "")
		got, err := Detect(ParseEnv(mixed), "")
		if err != nil || errWant != nil || numbersOf(got) != numbersOf(want) ||
			got.Job != want.Job {
			t.Errorf("%s: %s, %v; want %s, %v", file, numbersOf(got), err, numbersOf(want), errWant)
		}
	}
}

func readEnviron(t *testing.T, file string) []string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(string(text), "\n")
}

// Whatever the parsers accept exports nothing that belongs to one worker.
func FuzzExports(f *testing.F) {
	f.Add("A,NCCL_*,B=1,2", "# c\nA=1\nB=\n")
	f.Add("*,RANK,RDZV_*", "RANK=1\nA='x'")
	f.Add("R*,OMPI*,LD_PRELOAD=/x", "export A=1\r\n")
	env := Env{"RANK": "3", "RDZV_TOKEN": "t", "OMPI_COMM_WORLD_RANK": "3", "A": "a"}
	f.Fuzz(func(t *testing.T, text, file string) {
		exports, err := ParseExports([]string{text})
		lines, errFile := ParseExportFile(file)
		for _, err := range []error{err, errFile} {
			if err != nil && err.Error() == "" {
				t.Error("an error without a text")
			}
		}
		for _, e := range lines {
			if !e.Given || !strings.Contains(file, e.Name+"="+e.Value) {
				t.Errorf("%q is not a line of %q", shownExports([]Export{e}, nil), file)
			}
		}
		variables, _, err := Exported(env, append(exports, lines...))
		if err != nil && len(text)+len(file) < MaxExported {
			t.Error(err)
		}
		for _, entry := range variables {
			name, _, ok := strings.Cut(entry, "=")
			if !ok || !isName(name) || unexportable(name) != "" || strings.ContainsRune(entry, 0) {
				t.Errorf("%q exports %q", text, entry)
			}
		}
	})
}
