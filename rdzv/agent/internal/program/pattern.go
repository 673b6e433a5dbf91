package program

import (
	"regexp"
	"sync"
)

// A pattern is a regular expression that is compiled when it is first used, because all package
// variables are initialised in each process of rdzv, also in those that look at no program.
type pattern struct {
	expr string
	once sync.Once
	re   *regexp.Regexp
}

func (p *pattern) compiled() *regexp.Regexp {
	p.once.Do(func() { p.re = regexp.MustCompile(p.expr) })
	return p.re
}
