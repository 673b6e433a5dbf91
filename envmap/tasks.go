package envmap

import (
	"errors"
	"strconv"
	"strings"
)

// tasksOnNode returns entry node of a list such as "2,1(x2)": two tasks on node 0, one each on
// nodes 1 and 2. It returns Unknown if the list is shorter.
func tasksOnNode(list string, node int) (int, error) {
	first := 0
	for entry := range strings.SplitSeq(list, ",") {
		tasks, times, err := tasksEntry(entry)
		if err != nil {
			return Unknown, err
		}
		if node < first+times {
			return tasks, nil
		}
		first += times
	}
	return Unknown, nil
}

// tasksEntry parses "N" or "N(xTIMES)".
func tasksEntry(entry string) (tasks, times int, err error) {
	count, repeat, repeated := strings.Cut(entry, "(x")
	times = 1
	if repeated {
		inner, closed := strings.CutSuffix(repeat, ")")
		times, err = strconv.Atoi(inner)
		if !closed || err != nil || times < 1 || times > MaxTasks {
			return 0, 0, errors.New("invalid repetition in " + strconv.Quote(entry))
		}
	}
	tasks, err = strconv.Atoi(count)
	if err != nil || tasks < 0 || tasks > MaxTasks {
		return 0, 0, errors.New("invalid number of tasks in " + strconv.Quote(entry))
	}
	return tasks, times, nil
}

// countFields counts the comma-separated fields of a non-empty list.
func countFields(list string) int { return strings.Count(list, ",") + 1 }
