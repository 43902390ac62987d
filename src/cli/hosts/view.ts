import { shownStatus } from '../../core/hosts/host-status.ts'
import type { Host } from '../../core/protocol/http/hosts.ts'
import { toneOf } from '../text/screen.ts'
import type { Column } from '../text/table.ts'
import { showTime, timeColumn, withLocalTimes } from '../text/time.ts'
import { standingOf } from './standing.ts'

/** `role=web,zone=a`, as `-t` accepts them. */
export function showTags(tags: Host['tags']): string {
  return Object.entries(tags)
    .map(([key, value]) => `${key}=${value}`)
    .join(',')
}

type HostAgent = NonNullable<Host['agent']>
type Disk = NonNullable<Host['metrics']>['disk'][number]

/** `root (no sandbox)`; null until the agent reports it. */
export function showRunAs(agent: Pick<HostAgent, 'runAs' | 'sandbox'> | null): string | null {
  if (!agent || agent.runAs === null || agent.sandbox === null) return null
  const box = agent.sandbox === 'none' ? 'no sandbox' : `sandbox ${agent.sandbox}`
  return `${agent.runAs} (${box})`
}

export const hostColumns: readonly Column<Host>[] = [
  { heading: 'ID', value: (host) => host.id, essential: true },
  { heading: 'HOSTNAME', value: (host) => host.hostname, essential: true },
  { heading: 'STATUS', value: shownStatus, essential: true, tone: (host) => toneOf(shownStatus(host)) },
  { heading: 'IP', value: (host) => host.ip },
  { heading: 'TAGS', value: (host) => showTags(host.tags) },
  { heading: 'REASON', value: (host) => withLocalTimes(host.statusReason ?? '') },
]

export function wideHostColumns(utc: boolean): readonly Column<Host>[] {
  return [
    ...hostColumns,
    { heading: 'OS', value: (host) => host.systemInfo?.os ?? null },
    { heading: 'ARCH', value: (host) => host.systemInfo?.arch ?? null },
    { heading: 'CORES', value: (host) => host.systemInfo?.cpuCores ?? null },
    {
      heading: 'MEMORY',
      value: (host) => (host.systemInfo === null ? null : `${host.systemInfo.memoryMB} MB`),
    },
    {
      heading: 'CPU',
      value: (host) => (host.metrics === null ? null : `${host.metrics.cpu.usagePercent} %`),
    },
    { heading: 'AGENT', value: (host) => host.agent?.agentVersion ?? null },
    timeColumn('HEARD', (host) => host.agent?.lastHeartbeatAt ?? null, utc),
  ]
}

/** SSH login of the server for installing the agent. Older servers have no `hostKey`. */
function sshFields({ username, ip, sshPort, authType, hostKey }: Host): Record<string, string> {
  const key = hostKey ?? null
  const pinned: Record<string, string> = key === null ? {} : { 'ssh host key': key }
  if (username === null && sshPort === 22 && authType === 'NONE') return pinned
  const secret = authType === 'NONE' ? '' : ` (${authType === 'PASSWORD' ? 'password' : 'key'} kept)`
  return { ssh: `${username === null ? '' : `${username}@`}${ip}:${sshPort}${secret}`, ...pinned }
}

/** `/var 41.7 % (90 % of its inodes)`: inodes only if they may run out first. */
function showDisk({ mountPoint, usagePercent, inodesPercent = 0 }: Disk): string {
  const inodes = inodesPercent > usagePercent ? ` (${inodesPercent} % of its inodes)` : ''
  return `${mountPoint} ${usagePercent} %${inodes}`
}

export function hostFields(host: Host, utc: boolean): Record<string, string | number | null> {
  const { systemInfo: system, agent, metrics } = host
  return {
    id: host.id,
    hostname: host.hostname,
    status: withLocalTimes(standingOf(host)),
    ip: host.ip,
    tags: showTags(host.tags),
    ...sshFields(host),
    system: system === null ? null : `${system.distribution ?? system.os}, ${system.kernel}, ${system.arch}`,
    size:
      system === null ? null : `${system.cpuCores} cores, ${system.memoryMB} MB, ${system.diskGB} GB disk`,
    agent:
      agent === null
        ? null
        : `${agent.agentId} (${agent.agentVersion})${agent.connected ? ', connected' : ''}`,
    'scripts run as': showRunAs(agent),
    heard: showTime(agent?.lastHeartbeatAt ?? null, utc),
    cpu: metrics === null ? null : `${metrics.cpu.usagePercent} %, load ${metrics.cpu.loadAvg1m}`,
    memory:
      metrics === null
        ? null
        : `${metrics.memory.usedMB} of ${metrics.memory.totalMB} MB (${metrics.memory.usagePercent} %)`,
    disks: metrics === null ? null : metrics.disk.map(showDisk).join(', '),
    created: showTime(host.createdAt, utc),
  }
}
