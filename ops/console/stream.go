package console

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strings"
	"time"
)

// viewerTimeout is how long a viewer may take for one message before it is cut off.
const viewerTimeout = 10 * time.Second

// events is a stream of server-sent events.
type events struct {
	w    http.ResponseWriter
	conn *http.ResponseController
}

func newEvents(w http.ResponseWriter) *events {
	w.Header().Set("Content-Type", "text/event-stream")
	return &events{w: w, conn: http.NewResponseController(w)}
}

// send writes one event. The server's limits are for requests that end, so each message gets its own.
func (e *events) send(name, data string) error {
	_ = e.conn.SetReadDeadline(time.Time{})
	_ = e.conn.SetWriteDeadline(time.Now().Add(viewerTimeout))
	message := "event: " + name + "\ndata: " + strings.ReplaceAll(data, "\n", "\ndata: ") + "\n\n"
	if _, err := e.w.Write([]byte(message)); err != nil {
		return fmt.Errorf("send event: %w", err)
	}
	return e.conn.Flush()
}

// figures are a frame's for the browser: the numbers for its charts, and what to write where.
type figures struct {
	At       int64                    `json:"at"`
	Stations map[string]stationFigure `json:"stations"`
	Lanes    map[string][2]string     `json:"lanes"`   // their states and verdicts
	Details  []string                 `json:"details"` // of the causes
}

type stationFigure struct {
	Rate    *float64 `json:"r"`
	Waiting *float64 `json:"w"`
	Texts   []string `json:"t,omitempty"` // rate, waiting, age, note
	State   string   `json:"s,omitempty"`
}

func figuresOf(f frame) figures {
	out := figures{At: f.at.Unix(), Stations: map[string]stationFigure{}, Lanes: map[string][2]string{}}
	for _, l := range f.Lanes {
		out.Lanes[l.Service] = [2]string{l.State, l.Verdict}
	}
	for _, c := range f.Causes {
		out.Details = append(out.Details, c.Detail)
	}
	f.stations(func(s station) {
		out.Stations[s.ID] = stationFigure{
			Rate: tenths(s.Rate), Waiting: s.Waiting, State: s.State,
			Texts: []string{rate(s.Rate), number(s.Waiting), age(s.Age), s.Note},
		}
	})
	return out
}

func tenths(n *float64) *float64 {
	if n == nil {
		return nil
	}
	rounded := math.Round(*n*10) / 10
	return &rounded
}

// history is the past as columns, the way charts take it: the times, and for each station rates and what waited.
type history struct {
	At       []int64                  `json:"at"`
	Stations map[string][2][]*float64 `json:"stations"`
}

func historyOf(past []frame) history {
	h := history{At: make([]int64, len(past)), Stations: map[string][2][]*float64{}}
	for i, f := range past {
		h.At[i] = f.at.Unix()
		f.stations(func(s station) {
			columns, known := h.Stations[s.ID]
			if !known {
				columns = [2][]*float64{make([]*float64, len(past)), make([]*float64, len(past))}
				h.Stations[s.ID] = columns
			}
			columns[0][i], columns[1][i] = tenths(s.Rate), s.Waiting
		})
	}
	return h
}

func (c *Console) showFlow(w http.ResponseWriter, r *http.Request) {
	c.page(w, r, http.StatusOK, "flow", "Flow", c.flow.latest())
}

// streamFlow sends the past, and then each new frame: its figures, and the sentence and the stations when they have
// changed, as the HTML that takes their place.
func (c *Console) streamFlow(w http.ResponseWriter, r *http.Request) {
	past, frames, leave := c.flow.join()
	defer leave()
	stream := newEvents(w)
	send := func(name string, value any) error {
		encoded, err := json.Marshal(value)
		if err != nil {
			return fmt.Errorf("send event: %w", err)
		}
		return stream.send(name, string(encoded))
	}
	// replace sends a part of the page as HTML when its key is another one than that of what is shown. What
	// a page showed before it came here may be as old as the page.
	shown := map[string]string{}
	replace := func(part, key string, data any) error {
		if shown[part] == key {
			return nil
		}
		shown[part] = key
		body, err := render(part, data)
		if err != nil {
			return err
		}
		return stream.send(part, string(body))
	}
	err := send("history", historyOf(past))
	for err == nil {
		select {
		case <-r.Context().Done():
			return
		case <-c.ending:
			return
		case next := <-frames:
			err = errors.Join(replace("lanes", next.layout(), next.Lanes),
				replace("sentence", next.sentences(), next.Causes), send("figures", figuresOf(next)))
		}
	}
	c.cfg.Log.DebugContext(r.Context(), "viewer lost", "error", err)
}
