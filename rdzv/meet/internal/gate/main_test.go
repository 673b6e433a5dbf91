package gate

import (
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var testToken = []byte("0123456789abcdef0123456789abcdef")
