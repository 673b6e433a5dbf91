package store

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// fatalErrors receives etcd's fatal errors, usually that the disk is full. etcd does not return
// them: it logs them on the goroutine where they occur, and expects the logger to end the process.
type fatalErrors struct {
	dir    *dir
	report func(error) // Config.Failed
}

// OnWrite removes the store's files, because Close can no longer be called, and reports the error.
func (f fatalErrors) OnWrite(entry *zapcore.CheckedEntry, fields []zap.Field) {
	f.dir.remove() // on an error, the next store removes what is left
	err := fmt.Errorf("cannot run the store in %q: %w", f.dir.path, cause(entry.Message, fields))
	if f.report != nil {
		f.report(err)
	}
	panic(err)
}

// cause returns the message with the error that etcd logged with it, without the file name.
func cause(message string, fields []zap.Field) error {
	i := slices.IndexFunc(fields, func(f zap.Field) bool { return f.Type == zapcore.ErrorType })
	if i < 0 {
		return errors.New(message)
	}
	err := fields[i].Interface.(error)
	var path *fs.PathError
	if errors.As(err, &path) {
		err = path.Err
	}
	return fmt.Errorf("%s: %w", message, err)
}
