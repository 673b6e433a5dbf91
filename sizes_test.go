package imports

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"strings"
	"testing"
)

// A package with more files, or a type with more methods, does more than one thing.
const (
	maxFiles   = 26
	maxMethods = 25
)

// sizes counts the Go files of each package, and the methods of each type, which is "package.type".
// Tests do not count.
func sizes(t *testing.T) map[string]int {
	counts, files := map[string]int{}, token.NewFileSet()
	err := filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata"):
			return filepath.SkipDir
		case !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		file, err := parser.ParseFile(files, name, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		pkg := path.Dir(filepath.ToSlash(name))
		counts[pkg]++
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv != nil {
				counts[pkg+"."+receiver(f.Recv.List[0].Type)]++
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return counts
}

// receiver is the name of a receiver's type.
func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.IndexListExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}

func TestSizes(t *testing.T) {
	for name, n := range sizes(t) {
		limit := maxFiles
		if strings.Contains(path.Base(name), ".") {
			limit = maxMethods
		}
		if n > limit {
			t.Errorf("%s has %d files or methods, want at most %d", name, n, limit)
		}
	}
}
