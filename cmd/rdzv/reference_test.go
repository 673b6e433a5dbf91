package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"rdzv/internal/pagetest"
)

// The reference of commands is their help.
func TestGeneratedCommands(t *testing.T) {
	page := ""
	part := func(title, help string) {
		page += fmt.Sprintf("## rdzv %s\n\n```text\n%s```\n\n", title, help)
	}
	for _, c := range allCommands() {
		part(c.Name(), c.help())
	}
	pagetest.Part(t, "../../docs/reference/commands.md", "commands", page)
}

// The reference of exit codes has the constants of package agent with their comments.
func TestGeneratedExitCodes(t *testing.T) {
	var rows []string
	for _, c := range constantsIn(t, "../../rdzv/agent") {
		name := c.Names[0].Name
		if !strings.HasPrefix(name, "Code") {
			continue
		}
		code := literal(t, c)
		meaning := strings.Join(strings.Fields(c.Doc.Text()+c.Comment.Text()), " ")
		meaning = strings.TrimPrefix(meaning, name+" is the exit code of ")
		if name == "CodeSignal" {
			code, meaning = code+"+n", strings.TrimPrefix(meaning, "plus n: ")
		}
		rows = append(rows, "| "+code+" | "+strings.TrimRight(meaning, ".")+" |\n")
	}
	if len(rows) < 8 {
		t.Errorf("package agent has %d exit codes", len(rows))
	}
	slices.Sort(rows)
	page := "| code | meaning |\n|---|---|\n" + strings.Join(rows, "")
	pagetest.Part(t, "../../docs/reference/exit-codes.md", "codes", page)
}

// constantsIn are the constants of a package. One that has a declaration of its own has its comment.
func constantsIn(t *testing.T, dir string) (found []*ast.ValueSpec) {
	t.Helper()
	files, err := filepath.Glob(dir + "/*.go")
	fatalIf(t, err)
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		fatalIf(t, err)
		for _, d := range file.Decls {
			if g, ok := d.(*ast.GenDecl); ok && g.Tok == token.CONST {
				for _, spec := range g.Specs {
					c := spec.(*ast.ValueSpec)
					if len(g.Specs) == 1 && c.Doc == nil {
						c.Doc = g.Doc
					}
					found = append(found, c)
				}
			}
		}
	}
	return found
}

// literal is the value of a constant of package agent, which may be one of package rdzv.
func literal(t *testing.T, c *ast.ValueSpec) string {
	t.Helper()
	switch value := c.Values[0].(type) {
	case *ast.BasicLit:
		return value.Value
	case *ast.SelectorExpr:
		for _, other := range constantsIn(t, "../../rdzv") {
			if other.Names[0].Name == value.Sel.Name {
				return literal(t, other)
			}
		}
	}
	t.Fatalf("%s has no literal value", c.Names[0].Name)
	return ""
}
