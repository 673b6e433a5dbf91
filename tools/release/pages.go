package main

import (
	"cmp"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// link is a link of a page, to a file beside it or elsewhere.
var link = regexp.MustCompile(`\]\(([^)\s#]+)[^)]*\)`)

// pages are README.md and all that its links lead to in the sources, sorted: the other pages, their
// pictures, and examples.
func pages(dir string) (files []file, err error) {
	known := map[string]bool{}
	for next := []string{"README.md"}; len(next) > 0; {
		name := next[0]
		if next = next[1:]; known[name] {
			continue
		}
		known[name] = true
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return nil, fmt.Errorf("cannot read a page: %w", err)
		}
		files = append(files, file{name, 0o644, data})
		next = append(next, linksOf(name, data)...)
	}
	slices.SortFunc(files, func(a, b file) int { return cmp.Compare(a.path, b.path) })
	return files, nil
}

// linksOf are the files to which a page links.
func linksOf(page string, data []byte) (names []string) {
	if path.Ext(page) != ".md" {
		return nil
	}
	for _, m := range link.FindAllSubmatch(data, -1) {
		if to := string(m[1]); !strings.Contains(to, "://") {
			names = append(names, path.Join(path.Dir(page), to))
		}
	}
	return names
}
