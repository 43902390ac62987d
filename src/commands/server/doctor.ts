import { string } from '@oclif/core/flags'
import { LocalCommand } from '../../cli/command/base-command.ts'
import { control, isWithoutServer } from '../../cli/command/control.ts'
import { integer } from '../../cli/flags/checks.ts'
import { dataDirectory, keysFlag, serverDirectoryFlag } from '../../cli/flags/service.ts'

export default class ServerDoctor extends LocalCommand {
  static override summary = 'Check the data of a server and suggest fixes; exit 1 on errors'
  static override description =
    'Reads the store, keys, output, recordings, script versions and the audit log, and checks permissions, ' +
    "disk, clock and port. It changes nothing. Run it on the server's machine, as its user or root; it needs " +
    'no token. The server may be running or stopped. Errors exit 1, warnings and notes do not.\n\n--json: {dataDir, ' +
    'running, findings, well}; a finding is {code, severity, message, advice}, its severity error, warning or ' +
    'note.'
  static override examples = [
    '$ rsm server doctor',
    '$ rsm server doctor --data-dir /var/lib/rsm/server --json',
  ]
  static override flags = {
    host: string({
      env: 'RSM_LISTEN_HOST',
      default: '127.0.0.1',
      description: 'address that a server would listen on',
    }),
    port: integer({
      env: 'RSM_PORT',
      default: 18080,
      min: 0,
      max: 65535,
      description: 'port that a server would listen on',
    }),
    'data-dir': serverDirectoryFlag,
    keys: keysFlag,
  }

  async run() {
    const { flags } = await this.parse(ServerDoctor)
    const dataDir = dataDirectory('server', flags['data-dir'])
    const running = await control(dataDir, 'status', {}).catch((error: unknown) => {
      if (isWithoutServer(error)) return null
      throw error
    })
    const { examine } = await import('../../server/app/offline.ts')
    const { findings, well } = await examine(dataDir, flags.keys, {
      running,
      host: flags.host,
      port: flags.port,
    })
    const { findingData, findingLines } = await import('../../cli/hosts/findings-view.ts')
    const hasErrors = findings.some(({ severity }) => severity === 'error')
    const heading = findings.length === 0 ? [] : [`${dataDir}:`]
    this.print([...heading, ...findingLines({ findings, well }, dataDir)].join('\n'))
    process.exitCode = hasErrors ? 1 : 0
    return {
      dataDir,
      running: running !== null,
      findings: findings.map((each) => findingData(each, dataDir)),
      well,
    }
  }
}
