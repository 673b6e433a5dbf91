package store

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// failure is what etcd calls when it cannot go on, above all because the disk has
// become full. It has no error to return for that: it says so to its logger, on
// whichever goroutine finds out, and expects that the logger ends the process.
type failure struct {
	dir  *dir
	tell func(error)
}

func (f failure) logger() *zap.Logger {
	return zap.New(zapcore.NewNopCore(), zap.WithPanicHook(f), zap.WithFatalHook(f))
}

// OnWrite takes the store's files away, as Close can no longer be called.
func (f failure) OnWrite(entry *zapcore.CheckedEntry, fields []zap.Field) {
	f.dir.remove() // what cannot be removed now is abandoned, and the next store's to remove
	err := fmt.Errorf("cannot keep the store in %q: %w", f.dir.path, cause(entry.Message, fields))
	if f.tell != nil {
		f.tell(err)
	}
	panic(err)
}

// cause is the error that etcd gives beside its message, without the file's name,
// else the message.
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
