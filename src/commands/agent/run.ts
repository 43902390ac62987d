import { boolean, string } from '@oclif/core/flags'
import type { LogLevel } from '../../agent/log.ts'
import type { SandboxMode } from '../../core/protocol/http/hosts.ts'
import { normalUrl } from '../../net/server-url.ts'
import { BaseCommand } from '../../ui/command/base-command.ts'
import { dataDirectory, dataDirectoryHelp } from '../../ui/command/directories.ts'
import { aborted, endSoon, stopSignal } from '../../ui/command/until-stopped.ts'
import { integer } from '../../ui/flags/checks.ts'
import { readNamedFile, readSecretFile } from '../../ui/input/named-file.ts'
import { parseLimits } from '../../ui/input/values.ts'

export default class AgentRun extends BaseCommand {
  static override summary = 'Run the agent of this host; stays up until SIGTERM or Ctrl-C'
  static override examples = [
    '$ RSM_AGENT_ENROLL_TOKEN=... rsm agent run --url https://rsm.example.org',
    '$ rsm agent run --url https://rsm.example.org --enroll-token-file /etc/rsm/token --run-as deploy',
    '$ rsm agent run --url https://rsm.example.org --run-as deploy --sandbox strict --limit memory=1G',
  ]
  static override flags = {
    url: string({ env: 'RSM_AGENT_URL', required: true, helpValue: 'URL', description: 'the server' }),
    'enroll-token': string({
      env: 'RSM_AGENT_ENROLL_TOKEN',
      helpValue: 'TOKEN',
      description:
        'token from rsm hosts join; safer in the environment or a file, since every user sees arguments',
    }),
    'enroll-token-file': string({
      env: 'RSM_AGENT_ENROLL_TOKEN_FILE',
      helpValue: 'FILE',
      exclusive: ['enroll-token'],
      description: 'file with the enrolment token',
    }),
    'agent-id': string({
      env: 'RSM_AGENT_ID',
      helpValue: 'ID',
      description: 'id of this agent; made up and kept if not given',
    }),
    hostname: string({ env: 'RSM_AGENT_HOSTNAME', description: 'name of this host, if not its own' }),
    'data-dir': string({
      env: 'RSM_AGENT_DATA_DIR',
      helpValue: 'DIR',
      description: `directory for identity, journal and output; ${dataDirectoryHelp('agent')}`,
    }),
    'run-as': string({
      env: 'RSM_AGENT_RUN_AS',
      helpValue: 'USER',
      description: "user to run scripts as (default: the agent's own)",
    }),
    'allow-run-as': string({
      env: 'RSM_AGENT_ALLOW_RUN_AS',
      helpValue: 'USER',
      multiple: true,
      multipleNonGreedy: true,
      delimiter: ',',
      description: 'user that a task may run as',
    }),
    sandbox: string({
      env: 'RSM_AGENT_SANDBOX',
      options: ['none', 'user', 'strict'],
      default: 'none',
      description:
        "sandbox for every script: user = never as root or the agent's own user; strict = bubblewrap: own processes, read-only system, private /tmp, no network",
    }),
    'sandbox-network': boolean({
      env: 'RSM_AGENT_SANDBOX_NETWORK',
      description: 'let scripts in a strict sandbox reach the network',
    }),
    limit: string({
      env: 'RSM_AGENT_LIMIT',
      helpValue: 'NAME=SIZE',
      multiple: true,
      multipleNonGreedy: true,
      delimiter: ',',
      description: 'upper limits for every script: memory=512M, processes=100, cpu=50% of one core',
    }),
    'max-executions': integer({
      env: 'RSM_AGENT_MAX_EXECUTIONS',
      default: 16,
      min: 1,
      max: 10_000,
      description: 'most scripts at once; others wait',
    }),
    'on-demand': boolean({ env: 'RSM_AGENT_ON_DEMAND', description: 'link only while there is work' }),
    drain: boolean({ env: 'RSM_AGENT_DRAIN', description: 'when stopped, wait for running scripts' }),
    'allow-unsigned': boolean({
      env: 'RSM_AGENT_ALLOW_UNSIGNED',
      description: 'accept scripts without a signature, for servers that do not sign',
    }),
    'no-terminal': boolean({
      env: 'RSM_AGENT_NO_TERMINAL',
      description: 'open no terminals on this host',
    }),
    'tls-fingerprint': string({
      env: 'RSM_AGENT_TLS_FINGERPRINT',
      helpValue: 'PIN',
      description: 'trust only this key of the server (sha256//…), or certificate (sha256:HEX)',
    }),
    'log-level': string({
      env: 'RSM_AGENT_LOG_LEVEL',
      options: ['DEBUG', 'INFO', 'WARN', 'ERROR'],
      description: 'log level on stderr (default: set by the server)',
    }),
  }

  async run() {
    const { flags } = await this.parse(AgentRun)
    // All users of a machine can see arguments: this takes a token out of the list of processes.
    process.title = 'rsm agent run'
    const { closeInherited } = await import('../../agent/inherited.ts')
    closeInherited()
    const stop = stopSignal()
    const tokenFile = flags['enroll-token-file']
    const caFile = flags['ca-file'] ?? process.env['RSM_CA_FILE']
    // The agent reads it again, but does not know which option or variable named it.
    if (caFile !== undefined && caFile !== '')
      readNamedFile(caFile, flags['ca-file'] === undefined ? 'RSM_CA_FILE' : '--ca-file')
    const { startAgent } = await import('../../agent/main.ts')
    try {
      const agent = await startAgent({
        url: normalUrl(flags.url),
        dataDir: dataDirectory('agent', flags['data-dir']),
        enrollToken:
          tokenFile === undefined
            ? flags['enroll-token']
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
        tlsFingerprint: flags['tls-fingerprint'],
        logLevel: flags['log-level'] as LogLevel | undefined,
        signal: stop,
      })
      const { agentId, hostId } = agent
      process.stdout.write(
        flags.json
          ? `${JSON.stringify({ agentId, hostId })}\n`
          : `rsm agent ${agentId} is host ${hostId ?? 'unknown'}\n`,
      )
      await Promise.race([aborted(stop), agent.closed])
      await agent.stop()
    } catch (error) {
      if (!stop.aborted) throw error
    }
    endSoon()
  }
}
