package wrap

// What tests of package wrap_test use of those of this package.
var (
	AddRole    = role
	TestBinary = testBinary
	RoleEnv    = roleEnv
	MarkerEnv  = markerEnv
	Marked     = marked
)
