package console

import "strings"

// diffLine is a line of two texts: "-" is in the first alone, "+" in the second, " " in both.
type diffLine struct{ Sign, Text string }

// maxDiffLines bounds the table that the comparison takes; longer texts are shown one after the other.
const maxDiffLines = 2000

// diff compares two texts line by line, by their longest common subsequence.
func diff(before, after string) (lines []diffLine) {
	a, b := strings.Split(before, "\n"), strings.Split(after, "\n")
	if len(a) > maxDiffLines || len(b) > maxDiffLines {
		return []diffLine{{"-", before}, {"+", after}}
	}
	common := make([][]int, len(a)+1) // how many lines what is left from i and j on has in common
	common[len(a)] = make([]int, len(b)+1)
	for i := len(a) - 1; i >= 0; i-- {
		common[i] = make([]int, len(b)+1)
		for j := len(b) - 1; j >= 0; j-- {
			if common[i][j] = max(common[i+1][j], common[i][j+1]); a[i] == b[j] {
				common[i][j] = common[i+1][j+1] + 1
			}
		}
	}
	i, j := 0, 0
	for i < len(a) || j < len(b) {
		switch {
		case i < len(a) && j < len(b) && a[i] == b[j]:
			lines = append(lines, diffLine{" ", a[i]})
			i, j = i+1, j+1
		case i < len(a) && (j == len(b) || common[i+1][j] >= common[i][j+1]):
			lines = append(lines, diffLine{"-", a[i]})
			i++
		default:
			lines = append(lines, diffLine{"+", b[j]})
			j++
		}
	}
	return lines
}
