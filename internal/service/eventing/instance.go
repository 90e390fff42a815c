package eventing

import (
	"net"
	"os"
	"regexp"
	"strings"

	"example.com/twinbox/internal/service"
)

// Values of KAFKA_INSTANCE_ID that are no names.
const (
	instanceAuto = "auto"
	instanceNone = "none"
)

// What a broker takes; it refuses anything else when a member joins.
var (
	instanceName = regexp.MustCompile(`^[A-Za-z0-9._-]{1,200}$`)
	notInName    = regexp.MustCompile(`[^A-Za-z0-9._-]`)
)

func (c KafkaConfig) validInstance() bool {
	return instanceName.MatchString(c.InstanceID) && strings.Trim(c.InstanceID, ".") != ""
}

// instanceID is the name of this process in its consumer groups; "" is none. With auto it is the machine's name and the
// port of the admin listener: a process that is started again in its place has the same ones, two that run at the same
// time on one machine cannot have the same port, and a container has a machine's name of its own. A node without an
// admin listener has none.
func (c KafkaConfig) instanceID(bound service.Listening) string {
	switch c.InstanceID {
	case instanceNone:
		return ""
	case instanceAuto:
		_, port, unknown := net.SplitHostPort(bound.Admin)
		host, err := os.Hostname()
		if unknown != nil || err != nil || host == "" {
			return ""
		}
		name := notInName.ReplaceAllString(host, "-")
		return name[:min(len(name), 190)] + "-" + port
	}
	return c.InstanceID
}
