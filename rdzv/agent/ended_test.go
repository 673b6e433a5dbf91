package agent

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/hashicorp/go-multierror"

	"rdzv/wrap"
)

// All processes are known that could not be killed, in each task.
func TestSurvivors(t *testing.T) {
	left := func(pid int) error { return &wrap.SurvivorError{Process: wrap.Process{PID: pid}} }
	inTask := fmt.Errorf("in a task: %w", multierror.Append(left(1), left(2)))
	for _, c := range []struct {
		err  error
		want []int
	}{
		{nil, nil},
		{errors.New("no more processes"), nil},
		{left(1), []int{1}},
		{inTask, []int{1, 2}},
		{multierror.Append(wrap.ErrRunner, left(1)), []int{1}},
		{multierror.Append(nil, wrap.ErrRunner, inTask, left(3)), []int{1, 2, 3}},
	} {
		if got := survivors(c.err); !slices.Equal(got, c.want) {
			t.Errorf("%v: %v, want %v", c.err, got, c.want)
		}
	}
}
