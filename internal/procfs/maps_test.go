package procfs

import (
	"os"
	"reflect"
	"slices"
	"testing"
)

const someMappings = `55a6df4ad000-55a6df4ae000 r-xp 00001000 fd:01 1051 /usr/bin/a b
7fffb3b0c000-7fffb3b2d000 rw-p 00000000 00:00 0                          [stack]
7f7e4ff49000-7f7e4ff4e000 rw-p 00000000 00:00 0 
`

func TestParseMappings(t *testing.T) {
	want := []Mapping{
		{0x55a6df4ad000, 0x55a6df4ae000, "r-xp", 0x1000, "/usr/bin/a b"},
		{0x7fffb3b0c000, 0x7fffb3b2d000, "rw-p", 0, "[stack]"},
		{0x7f7e4ff49000, 0x7f7e4ff4e000, "rw-p", 0, ""},
	}
	if got := parseMappings([]byte(someMappings + "5-4 r--p\nno mapping\n")); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func FuzzParseMappings(f *testing.F) {
	f.Add([]byte(someMappings))
	f.Add([]byte("1-2 rw-p 0 \n\n1-2 rw-p\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		for _, m := range parseMappings(text) {
			if m.Start >= m.End || len(m.Perms) != 4 {
				t.Errorf("%+v", m)
			}
		}
	})
}

func TestMappingsOfThisProcess(t *testing.T) {
	list, err := Mappings(System, os.Getpid())
	exe, _ := os.Executable()
	isCode := func(m Mapping) bool { return m.File == exe && m.Perms == "r-xp" }
	if err != nil || !slices.ContainsFunc(list, isCode) {
		t.Errorf("got %+v, %v, want the code of %s among them", list, err, exe)
	}
}
