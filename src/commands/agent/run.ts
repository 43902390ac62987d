import { boolean, string } from '@oclif/core/flags'
import type { AgentOptions } from '../../agent/agent-options.ts'
import type { LogLevel } from '../../agent/log.ts'
import { LocalCommand } from '../../cli/command/base-command.ts'
import { aborted, endSoon, stopSignal } from '../../cli/command/until-stopped.ts'
import { Misuse } from '../../cli/command/usage.ts'
import { integer, listed } from '../../cli/flags/checks.ts'
import { takeVariable, withVariables } from '../../cli/flags/environment.ts'
import { dataDirectory, dataDirectoryHelp } from '../../cli/flags/service.ts'
import { readNamedFile, readSecretFile } from '../../cli/input/named-path.ts'
import { parseLimits } from '../../cli/input/values.ts'
import { jsonText } from '../../cli/text/sanitize.ts'
import { normalUrl, readJoin } from '../../core/endpoint.ts'
import type { SandboxMode } from '../../core/hosts/host.ts'

export default class AgentRun extends LocalCommand {
  static override summary = 'Run the agent of this host; stays up until SIGTERM or Ctrl-C'
  static override description =
    "--sandbox user never runs scripts as root or as the agent's user. --sandbox strict runs each in bubblewrap, " +
    'with its own processes and /tmp, a read-only system and no network.'
  static override examples = [
    '$ RSM_AGENT_ENROLL_TOKEN=... rsm agent run --url https://rsm.example.org',
    '$ rsm agent run --url https://rsm.example.org --enroll-token-file /etc/rsm/token --run-as deploy',
    '$ rsm agent run --url https://rsm.example.org --run-as deploy --sandbox strict --limit memory=1G',
  ]
  static override flags = withVariables('RSM_AGENT_', {
    url: string({ helpValue: 'URL', description: 'URL of the server' }),
    'join-file': string({
      helpValue: 'FILE',
      exclusive: ['url', 'enroll-token', 'enroll-token-file'],
      description: 'file with the join string, instead of --url and a token',
    }),
    'enroll-token': string({
      helpValue: 'TOKEN',
      description: 'token from rsm hosts join; other users can see it',
    }),
    'enroll-token-file': string({
      helpValue: 'FILE',
      exclusive: ['enroll-token'],
      description: 'file with the enrollment token',
    }),
    'agent-id': string({
      env: 'RSM_AGENT_ID',
      helpValue: 'ID',
      description: 'id of this agent (default: generated and kept)',
    }),
    hostname: string({ description: 'name of this host (default: its own hostname)' }),
    'data-dir': string({
      helpValue: 'DIR',
      description: dataDirectoryHelp('agent'),
    }),
    'run-as': string({
      helpValue: 'USER',
      description: "user to run scripts as (default: the agent's own)",
    }),
    'allow-run-as': string({
      helpValue: 'USER',
      ...listed,
      description: 'user that a task may run as',
    }),
    sandbox: string({
      options: ['none', 'user', 'strict'],
      default: 'none',
      description: "user: never as root or the agent's user; strict: bubblewrap",
    }),
    'sandbox-network': boolean({
      description: 'let scripts in a strict sandbox reach the network',
    }),
    limit: string({
      helpValue: 'NAME=SIZE',
      ...listed,
      description: 'per script: memory=512M, processes=100, cpu=50% of a core',
    }),
    'max-executions': integer({
      default: 16,
      min: 1,
      max: 10_000,
      description: 'run at most N scripts at once; others wait',
    }),
    'on-demand': boolean({ description: 'link only while there is work' }),
    drain: boolean({ description: 'when stopped, wait for running scripts' }),
    'allow-unsigned': boolean({
      description: 'accept unsigned scripts, for servers that do not sign',
    }),
    'no-terminal': boolean({
      description: 'open no terminals on this host',
    }),
    'ca-file': string({
      env: 'RSM_CA_FILE',
      helpValue: 'FILE',
      description: 'extra certificates to trust',
    }),
    'tls-fingerprint': string({
      helpValue: 'PIN',
      description: 'trust only this key or certificate of the server',
    }),
    'log-level': string({
      options: ['DEBUG', 'INFO', 'WARN', 'ERROR'],
      description: 'log level on stderr (default: set by the server)',
    }),
  })

  async run() {
    const { flags } = await this.parse(AgentRun)
    // Removes a token from the process list, where every user of the machine can see arguments.
    process.title = 'rsm agent run'
    // Otherwise scripts that run as the agent's user could read the token and enroll other hosts.
    const tokenVariable = 'RSM_AGENT_ENROLL_TOKEN'
    const token = takeVariable(tokenVariable)
    const { closeInherited } = await import('../../agent/processes/programs.ts')
    closeInherited()
    const stop = stopSignal()
    const tokenFile = flags['enroll-token-file']
    const caFile = flags['ca-file']
    // Read here only for an error that names the option; the agent reads the file again.
    if (caFile !== undefined && caFile !== '') readNamedFile(caFile, '--ca-file')
    const joinFile = flags['join-file']
    const join = joinFile === undefined ? undefined : readJoin(readNamedFile(joinFile, '--join-file'))
    const url = join?.url ?? flags.url
    if (url === undefined) throw new Misuse('--url is missing')
    const dataDir = dataDirectory('agent', flags['data-dir'])
    const { follow } = await import('../../agent/upgrade/follow.ts')
    const { installedFile } = await import('../../agent/processes/programs.ts')
    const options = {
      url: normalUrl(url),
      dataDir,
      enrollToken:
        tokenFile === undefined
          ? (join?.token ?? flags['enroll-token'])
          : () => readSecretFile(tokenFile, '--enroll-token-file'),
      agentId: flags['agent-id'],
      hostname: flags.hostname,
      runAs: flags['run-as'],
      allowRunAs: flags['allow-run-as'] ?? [],
      sandbox: flags.sandbox as SandboxMode,
      sandboxNetwork: Boolean(flags['sandbox-network']),
      limits: parseLimits(flags.limit ?? []),
      maxExecutions: flags['max-executions'],
      onDemand: Boolean(flags['on-demand']),
      drain: Boolean(flags.drain),
      allowUnsigned: Boolean(flags['allow-unsigned']),
      noTerminal: Boolean(flags['no-terminal']),
      caFile,
      tlsFingerprint: flags['tls-fingerprint'] ?? join?.fingerprint,
      logLevel: flags['log-level'] as LogLevel | undefined,
      installed: installedFile(),
    }
    await follow({
      dataDir,
      argv: process.argv.slice(2),
      variables: token === undefined ? {} : { [tokenVariable]: token },
      stop,
      print: (text) => this.notice(text),
      runHere: (orphaned) => this.#runHere(options, AbortSignal.any([stop, orphaned]), flags.json),
    })
    endSoon()
  }

  /** Resolves with true if the agent gave way to another version. */
  async #runHere(options: AgentOptions, signal: AbortSignal, asJson: boolean): Promise<boolean> {
    const { startAgent } = await import('../../agent/main.ts')
    let isGone = false
    let giveWay = () => {}
    const asked = () => giveWay()
    // Sent by an upgrade, which has no other channel to the agent that it replaces.
    process.on('SIGUSR2', asked)
    try {
      const agent = await startAgent({ ...options, signal })
      const { agentId, hostId } = agent
      process.stdout.write(
        asJson
          ? `${jsonText({ agentId, hostId })}\n`
          : `rsm agent ${agentId} is host ${hostId ?? 'unknown'}\n`,
      )
      giveWay = () =>
        void agent.giveWay().then((isDone) => {
          isGone ||= isDone
        })
      await Promise.race([aborted(signal), agent.closed])
      await agent.stop()
    } catch (error) {
      if (!signal.aborted) throw error
    } finally {
      process.off('SIGUSR2', asked)
    }
    return isGone && !signal.aborted
  }
}
