import { ownText } from '../disk/own-files.ts'
import type { Service } from './service.ts'

/** Settings that only the system's manager has, or that a service of a user does not need. */
const systemOnly = new Set([
  'After',
  'Wants',
  'StateDirectory',
  'StateDirectoryMode',
  'LimitNOFILE',
  'OOMScoreAdjust',
  'OOMPolicy',
  'DelegateSubgroup',
])
/** The first systemd that knows it. */
const delegateSubgroup = 254

/** A word of ExecStart (systemd.service(5)). */
const execWord = (text: string) => {
  const escaped = text.replaceAll('%', '%%').replaceAll('$', '$$$$')
  return /^[\w./@:+%$-]+$/.test(text) ? escaped : `"${escaped.replaceAll(/[\\"]/g, '\\$&')}"`
}

/**
 * The unit of `packaging/units` as it fits this host: it starts `command` (the words before `server start`), and holds
 * nothing that this systemd does not know.
 */
export function unitText(
  service: Service,
  command: readonly string[],
  systemdVersion: number,
  writable: readonly string[] = [],
): string {
  const { name, isUsers, envFile, dataDir, unit } = service
  const variable = name === 'agent' ? 'RSM_AGENT_DATA_DIR' : 'RSM_DATA_DIR'
  const lines = ownText(`packaging/units/${unit}.service`)
    .split('\n')
    .filter((line) => {
      const [key = ''] = line.split('=')
      if (key === 'DelegateSubgroup' && systemdVersion < delegateSubgroup) return false
      return !(isUsers && systemOnly.has(key))
    })
    .flatMap((line) => {
      if (line.startsWith('UMask=')) return [...writable.map((path) => `ReadWritePaths=${path}`), line]
      if (line.startsWith('ExecStart='))
        return [line.replace('/usr/bin/rsm', () => command.map(execWord).join(' '))]
      if (line.startsWith('EnvironmentFile=')) return [`EnvironmentFile=-${envFile}`]
      if (line.startsWith(`Environment=${variable}=`)) return [`Environment=${variable}=${dataDir}`]
      return [isUsers && line === 'WantedBy=multi-user.target' ? 'WantedBy=default.target' : line]
    })
  return lines.join('\n').replaceAll('/etc/rsm/', () => `${service.configDir}/`)
}
