import { randomBytes } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { join, resolve } from 'node:path'
import { LocalCommand } from '../../cli/command/base-command.ts'
import { control } from '../../cli/command/control.ts'
import { ifGiven } from '../../cli/flags/checks.ts'
import { takeVariable } from '../../cli/flags/environment.ts'
import { installFlags, typedSettings } from '../../cli/flags/service.ts'
import { confirm } from '../../cli/input/prompt.ts'
import { isLoopback } from '../../core/endpoint.ts'
import { RsmError } from '../../core/errors.ts'
import { accountChange, accountOf, type Change, directoryChange } from '../../install/change.ts'
import {
  applyPlan,
  enable,
  mergedSettings,
  needRoot,
  type Plan,
  planOf,
  replaces,
  showPlan,
  untilUp,
} from '../../install/plan.ts'
import { needPort } from '../../install/port-holder.ts'
import { dataDirOf, programFor, type Service, systemService } from '../../install/service.ts'
import { findSystemd, type Systemd } from '../../install/systemd.ts'
import { keyPin } from '../../net/connect.ts'
import ServerStart from './start.ts'

/** Timeout for the server to answer, in milliseconds. */
const upWithin = 60_000
const account = 'rsm'
const passwordVariable = 'RSM_ADMIN_PASSWORD'

const { 'new-keys': _newKeys, ...settings } = ServerStart.flags

export default class ServerInstall extends LocalCommand {
  static override summary = 'Install the server of this machine as a service, and wait until it answers'
  static override description =
    'Creates the user rsm, /etc/rsm/server.env and a systemd unit, starts rsm-server, and prints its URL, with TLS the ' +
    'fingerprint to pin, and on the first start the password of admin. Run it again to change settings; omitted ' +
    'settings stay. `rsm server start --help` explains them.'
  static override examples = [
    '$ rsm server install --host 0.0.0.0 --tls-self-signed',
    '$ rsm server install --host 0.0.0.0 --tls-cert /etc/rsm/fullchain.pem --tls-key /etc/rsm/privkey.pem --dry-run',
  ]
  static override flags = { ...settings, ...installFlags }

  async run() {
    const { flags, metadata } = await this.parse(ServerInstall)
    const service = systemService('server')
    const typed = typedSettings(ServerStart.flags, flags, metadata, this.variables)
    for (const name of [
      'RSM_DATA_DIR',
      'RSM_KEYS',
      'RSM_STORE_PASSWORD_FILE',
      'RSM_TLS_CERT',
      'RSM_TLS_KEY',
    ]) {
      const path = typed.get(name)
      if (path !== undefined) typed.set(name, resolve(path))
    }
    const all = mergedSettings(service, typed)
    const host = all.get('RSM_LISTEN_HOST') ?? all.get('RSM_HOST') ?? '127.0.0.1'
    const port = Number(all.get('RSM_PORT') ?? 18080)
    const isOn = (name: string) => /^(1|true|y|yes|on)$/i.test(all.get(name) ?? '')
    const tls = {
      certFile: all.get('RSM_TLS_CERT'),
      keyFile: all.get('RSM_TLS_KEY'),
      selfSigned: isOn('RSM_TLS_SELF_SIGNED'),
      hsts: isOn('RSM_HSTS'),
    }
    const { refuseAdvertised, refuseOpenHttp } = await import('../../server/app/options.ts')
    const { placeOf } = await import('../../server/storage/postgres/place.ts')
    placeOf({
      store: all.get('RSM_STORE'),
      storePasswordFile: all.get('RSM_STORE_PASSWORD_FILE'),
      insecureStore: isOn('RSM_INSECURE_STORE'),
      serverName: all.get('RSM_SERVER_NAME'),
      ...ifGiven(all.get('RSM_KEYS'), (keysDir) => ({ keysDir })),
    })
    const insecureHttp = isOn('RSM_INSECURE_HTTP')
    refuseOpenHttp({ host, tls, insecureHttp })
    refuseAdvertised({ advertise: all.get('RSM_ADVERTISE'), tls, insecureHttp })
    const dataDir = dataDirOf(service, all)
    const systemd = findSystemd(false)
    const first = this.#first(service, all)
    const plan = planOf({
      service,
      settings: typed,
      token: undefined,
      program: programFor(service, flags.prefix),
      systemd,
      first,
      writable: ['RSM_DATA_DIR', 'RSM_KEYS'].flatMap((name) => all.get(name) ?? []),
    })
    if (flags['dry-run']) {
      this.print(showPlan(plan, 'would'))
      return this.#result(plan, null)
    }
    needRoot(service)
    const isUp =
      systemd !== null && (await systemd.ctl('is-active', service.unit).catch(() => '')) === 'active'
    if (!isUp) await needPort(host, port)
    if (replaces(plan) && !flags.yes) {
      this.notice(showPlan(plan, 'would'))
      if (!(await confirm('Change the installation?', 'use --yes')))
        throw new RsmError('interrupted', 'nothing was changed')
    }
    const changed = applyPlan(plan)
    if (changed) for (const line of showPlan(plan, 'did').split('\n')) this.done(line)
    const url = `${tls.certFile !== undefined || tls.selfSigned ? 'https' : 'http'}://${/^(0\.0\.0\.0|::)$/.test(host) ? hostname() : host}:${port}`
    const start = { start: !flags['no-start'], changed }
    const started = await this.#start(service, systemd, plan, {
      dataDir,
      url,
      certFile: tls.certFile,
      ...start,
    })
    if (started !== null && isLoopback(host))
      this.hint(
        'only this machine can reach it; for hosts, add --host 0.0.0.0 and --tls-self-signed or --tls-cert',
      )
    return this.#result(plan, started)
  }

  /** The unit's user, and directories that systemd does not create. */
  #first({ dataDir }: Service, all: ReadonlyMap<string, string>): Change[] {
    const given = ['RSM_DATA_DIR', 'RSM_KEYS'].flatMap((name) => all.get(name) ?? [])
    return [
      accountChange(account, '/var/lib/rsm'),
      ...given
        .filter((path) => path !== dataDir)
        .map((path) => directoryChange(path, 0o700, () => accountOf(account))),
    ]
  }

  async #start(
    service: Service,
    systemd: Systemd | null,
    plan: Plan,
    {
      dataDir,
      url,
      certFile,
      start,
      changed,
    }: { dataDir: string; url: string; certFile: string | undefined; start: boolean; changed: boolean },
  ) {
    if (systemd === null) {
      const how = `this machine has no systemd. Let your init system run this at every boot, as user ${account}:\n${plan.line}`
      if (start)
        throw new RsmError('unavailable', 'the server is installed, but was not started', { hint: how })
      this.print(how)
      return null
    }
    // Either file exists once a start has found or created the first user.
    const isFirst = !['used', 'postgres.json'].some((name) => existsSync(join(dataDir, name)))
    const given = takeVariable(passwordVariable)
    const password = given ?? randomBytes(15).toString('base64url')
    // Give the first start the password of admin, because one that it generates would appear in the systemd journal.
    const rewrite = (more: ReadonlyMap<string, string>) =>
      plan.writeSettings(new Map([...plan.settings, ...more]))
    if (isFirst && start) rewrite(new Map([[passwordVariable, password]]))
    let madeUser = false
    try {
      await enable(service, systemd, { start, changed })
      if (!start) {
        this.done(`to start it: systemctl start ${service.unit}`)
        return null
      }
      madeUser = await untilUp(
        { service, systemd, within: upWithin },
        async () => (await control(dataDir, 'status', {}).catch(() => null))?.madeFirstUser ?? null,
        () => 'it does not answer',
      )
    } finally {
      if (isFirst && start) rewrite(new Map())
    }
    const keys = plan.settings.get('RSM_KEYS') ?? join(dataDir, 'keys')
    const pem = url.startsWith('https:') ? readFileSync(certFile ?? join(keys, 'tls.crt')) : null
    const fingerprint = pem === null ? null : keyPin(pem)
    this.print(`${service.unit} runs: ${url}${fingerprint === null ? '' : `\nfingerprint ${fingerprint}`}`)
    // Another server of a shared store may have created the first user.
    const made = isFirst && madeUser && given === undefined ? password : null
    if (made !== null) this.print(`created user admin with the password ${made} (shown only once)`)
    const pin = fingerprint !== null && certFile === undefined ? ` --tls-fingerprint ${fingerprint}` : ''
    this.hint(`next: rsm login ${url}${pin} --username admin`)
    return { url, fingerprint, password: made }
  }

  #result({ changes }: Plan, server: object | null) {
    return { changes: changes.map(({ what, state, lines }) => ({ what, state, lines })), server }
  }
}
