package secret

var testToken = []byte("0123456789abcdef0123456789abcdef")
