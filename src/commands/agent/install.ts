import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { boolean, string } from '@oclif/core/flags'
import { LocalCommand } from '../../cli/command/base-command.ts'
import { baseDirectory } from '../../cli/contexts/private-files.ts'
import { optional } from '../../cli/flags/checks.ts'
import { givenDirectory, installFlags, typedSettings } from '../../cli/flags/service.ts'
import { readNamedFile, readSecretFile } from '../../cli/input/named-path.ts'
import { confirm } from '../../cli/input/prompt.ts'
import { stdinReader } from '../../cli/input/stdin.ts'
import { type Join, normalUrl, readJoin, readPin, showPin } from '../../core/endpoint.ts'
import { RsmError } from '../../core/errors.ts'
import {
  applyPlan,
  dropToken,
  enable,
  mergedSettings,
  needRoot,
  type Plan,
  planOf,
  replaces,
  showPlan,
  untilUp,
} from '../../install/plan.ts'
import { dataDirOf, programFor, type Service, systemService, userService } from '../../install/service.ts'
import { findSystemd, type Systemd } from '../../install/systemd.ts'
import { trustOptions } from '../../net/connect.ts'
import AgentRun from './run.ts'

/** Timeout for the server to confirm the link, in milliseconds (contract §10). */
const linkWithin = 60_000

const {
  url: _url,
  'join-file': _joinFile,
  'enroll-token': _token,
  'enroll-token-file': tokenFile,
  ...settings
} = AgentRun.flags

export default class AgentInstall extends LocalCommand {
  static override summary = 'Install the agent of this host as a service, and wait until it is linked'
  static override description =
    'Writes /etc/rsm/agent.env and a systemd unit, starts rsm-agent, and exits 0 once the server confirms that the agent ' +
    'is linked. `rsm hosts join` prints the join string; - reads it from stdin, where other users cannot see it. Run it ' +
    'again to change settings; omitted settings stay. With --user it needs no root, and the agent runs as you.'
  static override examples = [
    '$ rsm agent install - < join-string',
    '$ rsm agent install --join-file join-string --run-as deploy --dry-run',
    '$ rsm agent install --url https://rsm.example.org --enroll-token-file /etc/rsm/token --user --no-start',
  ]
  static override args = {
    join: optional('join string; - reads it from stdin'),
  }
  static override flags = {
    'join-file': string({ helpValue: 'FILE', description: 'file with the join string' }),
    url: string({ env: 'RSM_AGENT_URL', helpValue: 'URL', description: 'URL of the server' }),
    'enroll-token-file': { ...tokenFile, exclusive: [] },
    ...settings,
    user: boolean({
      description: 'install for your own user, without root',
    }),
    ...installFlags,
  }

  async run() {
    const { args, flags, metadata } = await this.parse(AgentInstall)
    const join = await this.#join(args.join, flags)
    const service = flags.user ? userService('agent', baseDirectory) : systemService('agent')
    const typed = typedSettings(AgentRun.flags, flags, metadata, this.variables)
    const ofRun = ['RSM_AGENT_JOIN_FILE', 'RSM_AGENT_ENROLL_TOKEN', 'RSM_AGENT_ENROLL_TOKEN_FILE']
    for (const name of ofRun) typed.delete(name)
    const dataDir = typed.get(service.dataVariable)
    if (dataDir !== undefined)
      typed.set(service.dataVariable, resolve(givenDirectory('--data-dir', dataDir, service.dataDir)))
    const caFile = flags['ca-file'] ?? ''
    if (caFile !== '') {
      // Refuse an invalid file; a running agent only warns about it, so that its host stays reachable. A missing file may be
      // added later.
      if (existsSync(caFile)) trustOptions(caFile)
      typed.set('RSM_CA_FILE', resolve(caFile))
    }
    if (join !== null) {
      typed.set('RSM_AGENT_URL', join.url)
      if (join.fingerprint !== undefined) typed.set('RSM_AGENT_TLS_FINGERPRINT', join.fingerprint)
    }
    const token = join?.token ?? this.#token(flags['enroll-token-file'])
    if (token !== undefined) typed.set('RSM_AGENT_ENROLL_TOKEN_FILE', service.tokenFile)
    this.#check(service, typed)
    const systemd = findSystemd(service.isUsers)
    const plan = planOf({
      service,
      settings: typed,
      token,
      program: programFor(service, flags.prefix),
      systemd,
    })
    if (flags['dry-run']) {
      this.print(showPlan(plan, 'would'))
      return this.#result(plan, null)
    }
    needRoot(service)
    if (replaces(plan) && !flags.yes) {
      this.notice(showPlan(plan, 'would'))
      if (!(await confirm('Change the installation?', 'use --yes')))
        throw new RsmError('interrupted', 'nothing was changed')
    }
    const changed = applyPlan(plan)
    if (changed) for (const line of showPlan(plan, 'did').split('\n')) this.done(line)
    const linked = await this.#start(service, systemd, plan, { start: !flags['no-start'], changed })
    return this.#result(plan, linked)
  }

  async #join(
    given: string | undefined,
    flags: { url?: string | undefined; 'join-file'?: string | undefined },
  ): Promise<Join | null> {
    const file = flags['join-file']
    if (given !== undefined && file !== undefined)
      throw new RsmError('usage', 'a join string and --join-file exclude each other')
    if (given === undefined && file === undefined) return null
    if (flags.url !== undefined)
      throw new RsmError('usage', 'the join string contains the URL: leave out --url and RSM_AGENT_URL')
    if (file !== undefined) return readJoin(readNamedFile(file, '--join-file'))
    if (given !== '-') this.notice('warning: every user of this host sees arguments; use - and stdin')
    return readJoin(given === '-' ? await stdinReader()('the join string') : (given ?? ''))
  }

  #token(file: string | undefined): string | undefined {
    return file === undefined ? undefined : readSecretFile(file, '--enroll-token-file')
  }

  /** Refuses settings that the agent would refuse at its start, before anything is written. */
  #check(service: Service, typed: Map<string, string>): void {
    const all = mergedSettings(service, typed)
    const server = all.get('RSM_AGENT_URL')
    if (server === undefined)
      throw new RsmError('usage', 'no server given: a join string is missing', {
        hint: 'rsm hosts join prints the line; or give --url and --enroll-token-file',
      })
    if (typed.has('RSM_AGENT_URL')) typed.set('RSM_AGENT_URL', normalUrl(server))
    const pin = typed.get('RSM_AGENT_TLS_FINGERPRINT')
    if (pin !== undefined) typed.set('RSM_AGENT_TLS_FINGERPRINT', showPin(readPin(pin)))
  }

  async #start(
    service: Service,
    systemd: Systemd | null,
    { line, settings: all }: Plan,
    { start, changed }: { start: boolean; changed: boolean },
  ) {
    if (systemd === null) {
      const cron = `@reboot ${line.replaceAll('%', '\\%')}`
      const how = service.isUsers
        ? `systemd is not available to your user here. Add this line with crontab -e, and run it once now without @reboot:\n${cron}`
        : `this host has no systemd. Let your init system run this at every boot:\n${line}`
      if (start)
        throw new RsmError('unavailable', 'the agent is installed, but was not started', { hint: how })
      this.print(how)
      return null
    }
    await enable(service, systemd, { start, changed })
    if (!start) {
      this.done(`to start it: systemctl ${service.isUsers ? '--user ' : ''}start ${service.unit}`)
      return null
    }
    const { readAgentFacts } = await import('../../agent/reports/read-state.ts')
    const { isReachable } = await import('../../core/checks/examine-agent.ts')
    let reason = 'the server has not confirmed its link'
    const dataDir = dataDirOf(service, all)
    const state = await untilUp(
      { service, systemd, within: linkWithin },
      async () => {
        const pid = Number(await systemd.ctl('show', '-p', 'MainPID', '--value', service.unit))
        const found = await readAgentFacts(dataDir, '').catch(() => null)
        if (found === null || found.state.pid !== pid) return null
        if (found.state.reason !== null) reason = `it is not linked (${found.state.reason})`
        return isReachable(found.facts) ? found.state : null
      },
      () => reason,
    )
    dropToken(service)
    const { hostId, hostname, agentId } = state
    this.done(`${service.unit} runs and is linked: this is host ${hostname} (@id:${hostId}) of ${state.url}`)
    if (service.isUsers) this.hint('it stops when you log out, unless you run: loginctl enable-linger')
    return { hostId, hostname, agentId, url: state.url }
  }

  #result({ changes }: Plan, linked: object | null) {
    return { changes: changes.map(({ what, state, lines }) => ({ what, state, lines })), linked }
  }
}
