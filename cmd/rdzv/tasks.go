package main

import (
	"cmp"
	"context"
	"os"
	"slices"

	"rdzv/cmd/rdzv/internal/early"
	"rdzv/cmd/rdzv/internal/role"
	"rdzv/cmd/rdzv/internal/turn"
	"rdzv/envmap"
	"rdzv/internal/descriptor"
	"rdzv/rdzv/agent"
	"rdzv/wrap/tasks"
)

// otherTask is another task of this node, whose workers this agent runs too.
type otherTask struct {
	task  *tasks.Task
	env   envmap.Env
	place envmap.Placement
}

// otherTasks are in the order of their local ranks.
type otherTasks []otherTask

// awaitTasks waits for the other tasks of this node, and tells whether any are missing.
func awaitTasks(ctx context.Context) (all otherTasks, missing bool) {
	list, missing := role.Tasks(ctx)
	for _, t := range list {
		o := otherTask{task: t, env: envmap.ParseEnv(t.Hello().Env)}
		o.place, _ = early.Detect(o.env, "") // it has succeeded in the task
		all = append(all, o)
	}
	slices.SortFunc(all, func(a, b otherTask) int {
		return cmp.Compare(a.place.LocalRank, b.place.LocalRank)
	})
	return all, missing
}

// forAgent are the tasks as the agent uses them.
func (all otherTasks) forAgent(c agent.Config) (list []agent.Task) {
	for _, o := range all {
		t, hello, files := o.task, o.task.Hello(), o.task.Files()
		list = append(list, agent.Task{
			PID: hello.PID, Environ: hello.Env, PMI: firstOf(t.More()),
			Stdin: files[0], Stdout: files[1], Stderr: files[2],
			Accessible: func(name string) bool { return slices.Contains(hello.Devices, name) },
			Run:        t.Run, ReadFile: t.ReadFile, Remaining: t.Remaining,
			Signals: t.Signals(), Lost: t.Lost(), HasDied: t.HasDied,
		})
	}
	return list
}

// firstOf is the descriptor of the first of some files; 0 without any.
func firstOf(files []*os.File) (n int) {
	if len(files) > 0 {
		n, _ = descriptor.Of(files[0]) // open until the task has exited
	}
	return n
}

// exit makes the tasks exit with code.
func (all otherTasks) exit(code int, first turn.First) {
	for _, o := range all {
		o.task.Exit(code, int(turn.Of(o.place, o.env, code, first)))
	}
}
