package operate

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math"

	"github.com/go-json-experiment/json"

	"example.com/twinbox/engine/deadletter"
)

// Format is what every exported line says of itself. Another layout gets another number.
const Format = "twinbox.dead_letter/1"

// line is one exported dead letter. Keys, header values and payloads are base64: they need not be text. Null stays
// null.
type line struct {
	Format string `json:"format"`
	deadletter.Letter
}

const exportPage = 200

// Export writes the dead letters that the filter picks, one JSON object per line, by ID, and returns how many it wrote.
// It reads page by page, a bounded number of bytes at once: what arrives meanwhile may or may not be among them.
func (s *Store) Export(ctx context.Context, f Filter, w io.Writer) (n int, err error) {
	if err := f.check(); err != nil {
		return 0, err
	}
	limit := cmp.Or(f.Limit, math.MaxInt)
	for n < limit {
		f.Limit = min(exportPage, limit-n)
		letters, err := s.List(ctx, f)
		if err != nil || len(letters) == 0 {
			return n, err
		}
		for _, l := range letters {
			encoded, err := json.Marshal(line{Format, l}, json.FormatNilSliceAsNull(true))
			if err != nil {
				return n, fmt.Errorf("encode dead letter %d: %w", l.ID, err)
			}
			if _, err := w.Write(append(encoded, '\n')); err != nil {
				return n, fmt.Errorf("write dead letter %d: %w", l.ID, err)
			}
			n, f.After = n+1, l.ID
		}
	}
	return n, nil
}
