// Package spelling finds the word that a mistyped one was probably meant to be.
package spelling

// Nearest is the word most similar to a mistyped one; "" if each differs by three or more edits, or
// by more than half of the letters unless the first one is the same: env for evn.
func Nearest(word string, words []string) string {
	best, least := "", min(3, (len(word)+1)/2+1)
	for _, w := range words {
		if d := distance(word, w); d < least && (2*d <= len(word) || word[0] == w[0]) {
			best, least = w, d
		}
	}
	return best
}

// distance is Levenshtein's: how many letters to insert, remove or replace.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost = 1 + min(diagonal, row[j], row[j+1])
			}
			diagonal, row[j+1] = row[j+1], cost
		}
	}
	return row[len(b)]
}
