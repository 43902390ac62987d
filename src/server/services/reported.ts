import type { HeartbeatRequest, MetricsRequest, RegisterRequest } from '../../core/protocol/http/agent.ts'
import { printable } from '../../core/text/printable.ts'

/** What an agent says is taken whatever it holds, and shown as text that every reader of JSON takes (contract-2 §9b). */

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

type Report = Omit<MetricsRequest, 'agentId'>

const bytesOf = (value: unknown) => Buffer.byteLength(JSON.stringify(value))

/** A report that is too long loses its last disks. */
export function shownMetrics(report: Report): Report {
  const disk: Report['disk'] = []
  let bytes = bytesOf({ ...report, disk })
  for (const one of report.disk) {
    const shown = { ...one, mountPoint: printable(one.mountPoint) }
    bytes += bytesOf(shown) + 1
    if (bytes > mostBytes) break
    disk.push(shown)
  }
  return { ...report, disk }
}
