package record

// HeadStartOver is the value of signal/release: rank 0 has had its head start.
type HeadStartOver struct{}
