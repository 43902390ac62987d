import type { HeartbeatRequest, RegisterRequest } from '../../core/protocol/http/agent.ts'
import { Metrics } from '../../core/protocol/http/hosts.ts'
import { printable } from '../../core/text/printable.ts'

/** What an agent says is taken whatever it holds, and shown as text that every reader of JSON takes (contract §1). */

/** Bytes of a metrics report as JSON: each answer about the host bears the last one. */
const mostBytes = 32 * 1024

type Facts = Omit<RegisterRequest, 'agentId' | 'hostname'>

const textOf = <T>(value: T) => (typeof value === 'string' ? printable(value) : value)

export function shownFacts(input: RegisterRequest): RegisterRequest {
  const { agentId, hostname, ipAddresses, ...facts } = input
  const shown = Object.fromEntries(Object.entries(facts).map(([name, value]) => [name, textOf(value)]))
  return {
    agentId,
    hostname,
    ...(shown as Facts),
    ...(ipAddresses && { ipAddresses: ipAddresses.map((address) => printable(address)) }),
  }
}

export function shownBeat(beat: HeartbeatRequest): HeartbeatRequest {
  const { reason, linkFault } = beat
  if (reason === undefined && linkFault === undefined) return beat
  return {
    ...beat,
    ...(reason !== undefined && { reason: printable(reason) }),
    ...(linkFault !== undefined && { linkFault: printable(linkFault) }),
  }
}

const bytesOf = (value: unknown) => Buffer.byteLength(JSON.stringify(value))

/** The fields that a schema names: what else an agent sends would stand in every answer about its host. */
function known<T extends object>({ properties }: { properties: Record<keyof T, unknown> }, value: T): T {
  return Object.fromEntries(Object.keys(properties).map((name) => [name, value[name as keyof T]])) as T
}

/** A report that is too long loses its last disks. */
export function shownMetrics({ timestamp, cpu, memory, network, disk }: Metrics): Metrics {
  const { properties } = Metrics
  const report: Metrics = {
    timestamp,
    cpu: known(properties.cpu, cpu),
    memory: known(properties.memory, memory),
    disk: [],
    network: known(properties.network, network),
  }
  let bytes = bytesOf(report)
  for (const one of disk) {
    const shown = { ...known(properties.disk.items, one), mountPoint: printable(one.mountPoint) }
    bytes += bytesOf(shown) + 1
    if (bytes > mostBytes) break
    report.disk.push(shown)
  }
  return report
}
