package starter

import (
	"slices"
	"time"

	"rdzv/cmd/rdzv/internal/console"
)

// words shows what the agents say, each thing once.
type words struct {
	console *console.Console
	shown   []console.Record // about nodes
	ends    []said           // how the job ended, not shown yet
	over    bool             // it has been shown
	timer   *time.Timer      // shows the line about a failure
}

type said struct {
	node int
	line Line
}

// line shows a line of a node, if it is to be shown. Of what is about the job, that of the speaker
// is.
func (w *words) line(node, speaker int, l Line) {
	c := w.console
	switch {
	case l.About == Job || l.Record.IsStatus():
		if node == speaker {
			c.Show(l.Record)
		}
	case l.About == Node:
		if !slices.Contains(w.shown, l.Record) {
			w.shown = append(w.shown, l.Record)
			c.Show(l.Record)
		}
	case l.About == Failure:
		w.report(node, l)
	case w.over && len(w.ends) == 0 && node == speaker: // a hint about the end
		c.Show(l.Record)
	case !w.over:
		w.ends = append(w.ends, said{node, l})
		if node == speaker && l.About == Ended {
			w.over = true
			w.show(node)
		} else if node == speaker && w.timer == nil {
			w.timer = time.NewTimer(failedWait)
		}
	}
}

// report shows the report on a failure, the first one, with what belongs to it.
func (w *words) report(node int, l Line) {
	first := !w.over
	if first {
		w.over, w.ends = true, []said{{node, l}}
	}
	if first || len(w.ends) > 0 && w.ends[0].node == node {
		w.console.Show(l.Record)
	}
}

// show shows how the job ended as a node says it.
func (w *words) show(node int) {
	for _, s := range w.ends {
		if s.node == node {
			w.console.Show(s.line.Record)
		}
	}
	w.ends = nil
}

// late delivers when the line about a failure is to be shown.
func (w *words) late() <-chan time.Time {
	if w.timer == nil {
		return nil
	}
	return w.timer.C
}

// showFailed shows the line about a failure: the report takes its time.
func (w *words) showFailed() {
	if !w.over && len(w.ends) > 0 {
		w.show(w.ends[0].node)
	}
}

// end shows what has been held back.
func (w *words) end() {
	if !w.over && len(w.ends) > 0 {
		w.over = true
		w.show(slices.MinFunc(w.ends, func(a, b said) int { return a.node - b.node }).node)
	}
}

// ended tells whether the user has been told how the job ended.
func (w *words) ended() bool { return w.over }
