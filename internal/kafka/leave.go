package kafka

import (
	"errors"
	"fmt"

	"github.com/IBM/sarama"
)

// leave tells the group that a member with an instance id is gone. sarama leaves for members without one; with one it
// stays, and its partitions would have no owner until the session times out. That wait is what the id shall spare after
// a crash, and nobody wants it after a shutdown. The member id goes along, so that a successor is not thrown out.
func (m *member) leave() {
	if m.cfg.InstanceID == "" || m.session == nil || errors.As(m.status.reason(), new(*FencedError)) {
		return
	}
	if err := m.sendLeave(); err != nil {
		m.log.Warn("leave the group", "error", err)
	}
}

func (m *member) sendLeave() (err error) {
	cfg := m.cfg.base()
	cfg.Metadata.Retry.Max = 1
	client, err := sarama.NewClient(m.cfg.Brokers, cfg)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	coordinator, err := client.Coordinator(m.cfg.Group)
	if err != nil {
		return fmt.Errorf("find coordinator: %w", err)
	}
	answer, err := coordinator.LeaveGroup(&sarama.LeaveGroupRequest{
		Version: 3,
		GroupId: m.cfg.Group,
		Members: []sarama.MemberIdentity{{MemberId: m.session.MemberID(), GroupInstanceId: &m.cfg.InstanceID}},
	})
	if err != nil {
		return fmt.Errorf("send request: %w", err)
	}
	refusals := []sarama.KError{answer.Err}
	for _, member := range answer.Members {
		refusals = append(refusals, member.Err)
	}
	for _, refusal := range refusals {
		if refusal != sarama.ErrNoError && refusal != sarama.ErrUnknownMemberId {
			return refusal
		}
	}
	return nil
}
