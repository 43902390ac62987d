import type { Metrics } from '../../core/host.ts'
import type { HeartbeatRequest, RegisterRequest } from '../../core/protocol/http/agent.ts'
import { BeatFacts, HelloFacts } from '../../core/protocol/http/host-agent.ts'
import { Metrics as Report } from '../../core/protocol/http/hosts.ts'
import type { Static, TObject } from '../../core/protocol/http/schema.ts'
import type { AgentHello } from '../../core/protocol/messages.ts'
import { limitNames } from '../../core/task/limits.ts'
import { printable } from '../../core/text/printable.ts'
import type { Beat, Greeting } from '../seams/presence.ts'

/** What an agent says is taken whatever it holds, and shown as text that every reader of JSON takes (contract §1). */

/** Bytes of a metrics report as JSON: each answer about the host bears the last one. */
const mostBytes = 32 * 1024

type Facts = Omit<RegisterRequest, 'agentId' | 'hostname'>

const textOf = <T>(value: T) => (typeof value === 'string' ? printable(value) : value)
const textsOf = <T extends object>(said: T): T =>
  Object.fromEntries(Object.entries(said).map(([name, value]) => [name, textOf(value)])) as T

export function shownFacts({ agentId, hostname, ipAddresses, ...facts }: RegisterRequest): RegisterRequest {
  return {
    agentId,
    hostname,
    ...textsOf<Facts>(facts),
    ...(ipAddresses && { ipAddresses: ipAddresses.map((address) => printable(address)) }),
  }
}

/** The fields that a schema names, null where nothing is said: what else an agent sends would stand in every answer. */
export function fieldsOf<S extends TObject>(
  { properties }: S,
  said: { [K in keyof Static<S>]?: Static<S>[K] | undefined } | null = {},
): Static<S> {
  const values = said as Record<string, unknown> | null
  return Object.fromEntries(
    Object.keys(properties).map((name) => [name, values?.[name] ?? null]),
  ) as Static<S>
}

export function heardBeat({ status, uptime, timestamp, reason, ...said }: HeartbeatRequest): Beat {
  const says = fieldsOf(BeatFacts, { ...said, statusReason: reason })
  return { status, uptime, timestamp, says: textsOf(says) }
}

export function greetingOf({ agentVersion, capabilities: { limits, ...said } }: AgentHello): Greeting {
  const enforces = limits && limitNames.filter((name) => limits.includes(name))
  return textsOf({ agentVersion, ...fieldsOf(HelloFacts, { ...said, enforces }) })
}

const bytesOf = (value: unknown) => Buffer.byteLength(JSON.stringify(value))

/** A report that is too long loses its last disks. */
export function shownMetrics({ timestamp, cpu, memory, network, disk }: Metrics): Metrics {
  const { properties } = Report
  const report: Metrics = {
    timestamp,
    cpu: fieldsOf(properties.cpu, cpu),
    memory: fieldsOf(properties.memory, memory),
    disk: [],
    network: fieldsOf(properties.network, network),
  }
  let bytes = bytesOf(report)
  for (const one of disk) {
    const shown = { ...fieldsOf(properties.disk.items, one), mountPoint: printable(one.mountPoint) }
    bytes += bytesOf(shown) + 1
    if (bytes > mostBytes) break
    report.disk.push(shown)
  }
  return report
}
