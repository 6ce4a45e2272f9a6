{{- define "milepost.image" -}}
{{ .Values.image.repository }}{{ with .Values.image.digest }}@{{ . }}{{ else }}:{{ .Values.image.tag | default .Chart.AppVersion }}{{ end }}
{{- end }}

{{- define "milepost.security" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
readOnlyRootFilesystem: true
allowPrivilegeEscalation: false
capabilities: { drop: [ALL] }
seccompProfile: { type: RuntimeDefault }
{{- end }}

{{- /* A deployment of one part. Takes root, part, only (a list of arguments), key (of the store's secret). */}}
{{- define "milepost.deployment" -}}
{{- $settings := get .root.Values .part -}}
{{- $values := .root.Values -}}
{{- $name := .root.Release.Name -}}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ $name }}-{{ .part }}
  labels: { app: {{ $name }}, part: {{ .part }} }
spec:
  {{- if not (kindIs "invalid" $settings.replicas) }}
  replicas: {{ $settings.replicas }}
  {{- end }}
  selector: { matchLabels: { app: {{ $name }}, part: {{ .part }} } }
  template:
    metadata: { labels: { app: {{ $name }}, part: {{ .part }} } }
    spec:
      automountServiceAccountToken: false
      # Longer than the maximum duration of a request (90 s) plus the preStop sleep, and than `drain` in the configuration.
      terminationGracePeriodSeconds: 120
      topologySpreadConstraints:
        - maxSkew: 1
          topologyKey: kubernetes.io/hostname
          whenUnsatisfiable: ScheduleAnyway
          labelSelector: { matchLabels: { app: {{ $name }}, part: {{ .part }} } }
      containers:
        - name: {{ .part }}
          image: {{ include "milepost.image" .root }}
          args: [serve, {{ .only }}, --listen, "0.0.0.0:7070", --require-tokens, --tls-cert, /tls/tls.crt, --tls-key, /tls/tls.key]
          envFrom: [{ secretRef: { name: {{ $values.environmentSecret }}, optional: true } }]
          env:
            - { name: MILEPOST_CONFIG, value: /etc/milepost/milepost.toml }
            - name: MILEPOST_STORE
              valueFrom: { secretKeyRef: { name: {{ $values.storeSecret }}, key: {{ .key }} } }
          ports: [{ name: https, containerPort: 7070 }]
          # Servers accept the host name localhost regardless of allowed_hosts. Liveness does not depend on the database, readiness does.
          startupProbe:
            httpGet: { path: /healthz, port: https, scheme: HTTPS, httpHeaders: [{ name: Host, value: localhost }] }
            periodSeconds: 2
            failureThreshold: 60
          livenessProbe:
            httpGet: { path: /healthz, port: https, scheme: HTTPS, httpHeaders: [{ name: Host, value: localhost }] }
            periodSeconds: 10
          readinessProbe:
            httpGet: { path: /readyz, port: https, scheme: HTTPS, httpHeaders: [{ name: Host, value: localhost }] }
            periodSeconds: 5
          {{- if eq .part "server" }}
          # After SIGTERM the server accepts no connections, so the signal is delayed until clients no longer use the pod.
          lifecycle: { preStop: { exec: { command: [sleep, "5"] } } }
          {{- end }}
          resources: {{ toJson $settings.resources }}
          securityContext:
            {{- include "milepost.security" . | nindent 12 }}
          volumeMounts:
            - { name: config, mountPath: /etc/milepost, readOnly: true }
            - { name: tls, mountPath: /tls, readOnly: true }
            - { name: tmp, mountPath: /tmp }
      volumes:
        - { name: config, configMap: { name: {{ $values.configMap }} } }
        - { name: tls, secret: { secretName: {{ $values.tlsSecret }} } }
        - { name: tmp, emptyDir: {} }
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: {{ $name }}-{{ .part }}
  labels: { app: {{ $name }}, part: {{ .part }} }
spec:
  maxUnavailable: 1
  selector: { matchLabels: { app: {{ $name }}, part: {{ .part }} } }
{{- end }}
