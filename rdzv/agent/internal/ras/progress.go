package ras

import "fmt"

// Progressed tells whether ranks have launched collective operations, or made communicators,
// between two reports. A rank that does not answer any more is no progress.
func Progressed(before, after Report) bool {
	old := map[string]Comm{}
	for _, c := range before.Comms {
		old[c.ID] = c
	}
	for _, c := range after.Comms {
		was, known := old[c.ID]
		delete(old, c.ID)
		switch {
		case !known && len(c.Ops) == 0: // something is missing, as before
		case !known, before.Complete && after.Complete && advanced(was, c):
			return true
		case !(before.Complete && after.Complete) && len(was.Missing) == len(c.Missing) &&
			was.levels() != c.levels():
			return true
		}
	}
	// As text a communicator is named only if its ranks differ: the others have caught up.
	for _, c := range old {
		if !before.Complete && len(c.Ops) > 0 && len(c.Missing) == 0 {
			return true
		}
	}
	return false
}

// advanced tells whether a rank that is in both has another count.
func advanced(before, after Comm) bool {
	type key struct {
		op   string
		rank int
	}
	counts := map[key]uint64{}
	each := func(c Comm, do func(k key, count uint64)) {
		for _, op := range c.Ops {
			for _, g := range op.Groups {
				for _, m := range g.Members {
					do(key{op.Name, m.Rank}, g.Count)
				}
			}
		}
	}
	each(before, func(k key, count uint64) { counts[k] = count })
	other := false
	each(after, func(k key, count uint64) {
		if was, known := counts[k]; known && was != count {
			other = true
		}
	})
	return other
}

// levels are the counts, and how many ranks have each.
func (c Comm) levels() (text string) {
	for _, op := range c.Ops {
		text += op.Name
		for _, g := range op.Groups {
			text += fmt.Sprintf(" %dx%d", g.N, g.Count)
		}
		text += "\n"
	}
	return text
}
