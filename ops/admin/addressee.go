package admin

import (
	"fmt"
	"net/http"

	"example.com/twinbox/frame/web"
)

// The headers in which a request says whom it is meant for, and every answer who gave it.
const (
	HeaderService     = "Twinbox-Service"
	HeaderEnvironment = "Twinbox-Environment"
)

// addressed refuses what is meant for another service or another environment. The check is part of the request that
// changes something: to ask first and then to change would leave a moment in which the address comes to lead elsewhere.
func addressed(service, environment string) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set(HeaderService, service)
			w.Header().Set(HeaderEnvironment, environment)
			for _, check := range []struct {
				header, own string
				code        web.Code
			}{
				{HeaderService, service, codeWrongService}, {HeaderEnvironment, environment, codeWrongEnvironment},
			} {
				if given := r.Header.Values(check.header); len(given) > 1 || len(given) == 1 && given[0] != check.own {
					web.WriteProblem(w, r, &web.Error{
						Status: http.StatusMisdirectedRequest, Code: check.code,
						Detail: fmt.Sprintf("This is %s in the environment %s; the request is meant for another one.",
							service, environment),
					})
					return
				}
			}
			next.ServeHTTP(w, r)
		})
	}
}
