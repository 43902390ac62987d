import { join } from 'node:path'
import { boolean, string } from '@oclif/core/flags'
import { LocalCommand } from '../../cli/command/base-command.ts'
import { aborted, endSoon, startedBefore, stopSignal } from '../../cli/command/until-stopped.ts'
import { ifGiven, integer, listed } from '../../cli/flags/checks.ts'
import { takeVariable, withVariables } from '../../cli/flags/environment.ts'
import {
  dataDirectory,
  dataDirectoryHelp,
  givenDirectory,
  insecureStore,
  retentionFlags,
} from '../../cli/flags/service.ts'
import { parseBytes, parseTimer } from '../../cli/input/values.ts'
import { jsonText } from '../../cli/text/sanitize.ts'
import { type LogLevel, logLevels } from '../../core/protocol/control.ts'
import { proxySetting } from '../../net/proxy.ts'

export default class ServerStart extends LocalCommand {
  static override summary = 'Start the server; stays up until SIGTERM or Ctrl-C'
  static override description =
    '--store is postgres://USER@HOST[,HOST…]/DATABASE, and requires --keys and --server-name. --hsts lasts half a year ' +
    'and covers every port of the host name. A trusted proxy reports client addresses with the PROXY protocol v2 or ' +
    'X-Forwarded-For.'
  static override examples = [
    '$ rsm server start',
    '$ RSM_DATA_DIR=/srv/rsm rsm server start --port 18080',
    '$ rsm server start --host 10.0.0.7 --tls-self-signed --trusted-proxy 10.0.0.5 --trusted-proxy 10.0.1.0/24',
    '$ rsm server start --store postgres://rsm@pg1,pg2/rsm --keys /etc/rsm/keys --server-name a',
    '$ rsm server start --data-dir /var/lib/rsm/server --new-keys   # keys/ is lost',
  ]
  static override flags = {
    ...withVariables('RSM_', {
      host: string({
        env: 'RSM_LISTEN_HOST',
        default: '127.0.0.1',
        description: 'address to listen on',
      }),
      port: integer({
        default: 18080,
        min: 0,
        max: 65535,
        description: 'port; 0 = any free port',
      }),
      'data-dir': string({
        helpValue: 'DIR',
        description: dataDirectoryHelp('server'),
      }),
      keys: string({
        helpValue: 'DIR',
        description: 'directory of the keys (default: keys/ in --data-dir)',
      }),
      store: string({
        helpValue: 'URL',
        description: 'PostgreSQL for several servers, postgres://USER@HOST/NAME',
      }),
      'store-password-file': string({
        helpValue: 'FILE',
        description: 'file with the password for --store (default: ~/.pgpass)',
      }),
      'insecure-store': insecureStore,
      'server-name': string({
        helpValue: 'NAME',
        description: 'unique name of this server among those of --store',
      }),
      advertise: string({
        helpValue: 'HOST:PORT|URL',
        description: 'address for other servers (default: its listen address)',
      }),
      'heartbeat-interval': integer({
        default: 30,
        min: 1,
        max: 3600,
        description: 'seconds between heartbeats of an agent',
      }),
      'metrics-interval': integer({
        default: 60,
        min: 1,
        max: 86400,
        description: 'seconds between metrics of an agent',
      }),
      'warn-after': string({
        default: '10m',
        helpValue: 'TIME',
        description: 'WARNING once CPU or memory is at 90 % for this long',
      }),
      'ws-idle-timeout': integer({
        default: 300,
        min: 1,
        max: 86400,
        description: 'seconds until a silent agent link is closed',
      }),
      ...retentionFlags,
      'no-record': boolean({
        description: 'do not record terminal sessions',
      }),
      'no-audit-commands': boolean({
        description: 'leave commands and first lines out of the audit log',
      }),
      'record-partly': boolean({
        description: 'keep sessions open when their recording is full',
      }),
      'terminal-idle-limit': integer({
        default: 3600,
        min: 0,
        max: 604_800,
        helpValue: 'SECONDS',
        description: 'seconds until an idle terminal session ends, 0 = never',
      }),
      'tls-cert': string({
        helpValue: 'FILE',
        description: 'PEM certificate (full chain) to serve TLS; SIGHUP reloads it',
      }),
      'tls-key': string({ helpValue: 'FILE', description: 'private key of --tls-cert, PEM' }),
      'tls-self-signed': boolean({
        description: 'serve TLS with a self-signed certificate, which clients pin',
      }),
      hsts: boolean({
        description: 'with --tls-cert: make browsers insist on TLS (HSTS)',
      }),
      'insecure-http': boolean({
        description: 'listen beyond loopback without TLS, unencrypted',
      }),
      'trusted-proxy': string({
        helpValue: 'CIDR',
        ...listed,
        description: "proxy or network trusted to report the client's address",
      }),
      'public-url': string({
        helpValue: 'URL',
        description: "URL for hosts and links in webhooks (default: the caller's)",
      }),
      'webhook-allow': string({
        helpValue: 'CIDR',
        ...listed,
        description: 'non-public address or network that webhooks may send to',
      }),
      'webhook-insecure': boolean({
        description: 'allow http to loopback addresses of --webhook-allow',
      }),
      'max-file-size': string({
        default: '2G',
        helpValue: 'SIZE',
        description: 'largest file that rsm copies to or from hosts',
      }),
      'max-upload-bytes': string({
        helpValue: 'SIZE',
        description: 'unused uploads per user (20G or 10 x --max-file-size)',
      }),
      'metrics-open': boolean({
        description: 'answer /metrics without a token',
      }),
      'log-level': string({
        default: 'INFO',
        options: [...logLevels],
        description: 'log level on stderr',
      }),
    }),
    'new-keys': boolean({
      description: 'replace lost keys: enroll agents again, lose stored secrets',
    }),
  }

  async run() {
    const { flags } = await this.parse(ServerStart)
    // SIGHUP of a closed terminal stops the server in order; with --tls-cert, SIGHUP reloads the certificate instead.
    const stop = stopSignal({ hangUp: flags['tls-cert'] === undefined })
    if (process.env['RSM_AUDIT_COPY'])
      this.warning(
        'RSM_AUDIT_COPY has no effect: let a log shipper read the audit log (docs/operate/audit.md)',
      )
    const adminPassword = takeVariable('RSM_ADMIN_PASSWORD')
    const dataDir = dataDirectory('server', flags['data-dir'])
    const { startServer } = await import('../../server/main.ts')
    const starting = startServer({
      host: flags.host,
      port: flags.port,
      dataDir,
      ...(flags.keys === undefined
        ? {}
        : { keysDir: givenDirectory('--keys', flags.keys, join(dataDir, 'keys')) }),
      store: flags.store,
      storePasswordFile: flags['store-password-file'],
      insecureStore: flags['insecure-store'],
      serverName: flags['server-name'],
      advertise: flags.advertise,
      heartbeatInterval: flags['heartbeat-interval'],
      metricsInterval: flags['metrics-interval'],
      warnAfter: parseTimer('--warn-after', flags['warn-after']),
      wsIdleTimeout: flags['ws-idle-timeout'],
      taskRetention: flags['task-retention'],
      maxOutputBytes: parseBytes('--max-output-bytes', flags['max-output-bytes']),
      maxFileSize: parseBytes('--max-file-size', flags['max-file-size']),
      maxUploadBytes: ifGiven(flags['max-upload-bytes'], (size) => parseBytes('--max-upload-bytes', size)),
      recordTerminals: !flags['no-record'],
      recordingBound: { continuesUnrecorded: flags['record-partly'] },
      recordingRetention: flags['recording-retention'],
      terminalIdleLimit: flags['terminal-idle-limit'],
      tls: {
        certFile: flags['tls-cert'],
        keyFile: flags['tls-key'],
        selfSigned: flags['tls-self-signed'],
        hsts: flags.hsts,
      },
      insecureHttp: flags['insecure-http'],
      trustedProxies: flags['trusted-proxy'] ?? [],
      webhooks: {
        allow: flags['webhook-allow'],
        insecure: flags['webhook-insecure'],
        proxyVariable: (url) => proxySetting(url)?.[0],
      },
      publicUrl: flags['public-url'],
      metricsOpen: flags['metrics-open'],
      newKeys: flags['new-keys'],
      auditCommands: !flags['no-audit-commands'],
      logLevel: flags['log-level'] as LogLevel,
      ...(adminPassword === undefined ? {} : { adminPassword }),
    })
    const server = await startedBefore(stop, starting)
    if (server === null) return endSoon()
    const { url, port, fingerprint, selfSigned, createdAdmin } = server
    if (flags['tls-cert'] !== undefined) process.on('SIGHUP', () => void server.reloadCertificate())
    if (createdAdmin !== null)
      process.stderr.write(
        `rsm: created user ${createdAdmin.username} with the password ${createdAdmin.password} (shown only once)\n`,
      )
    process.stdout.write(
      flags.json
        ? `${jsonText({ url, port, ...(fingerprint === null ? {} : { fingerprint }) })}\n`
        : `rsm server listening on ${url}\n${fingerprint === null ? '' : `fingerprint ${fingerprint}\n`}`,
    )
    this.hint(`next: rsm login ${url}${selfSigned ? ` --tls-fingerprint ${fingerprint}` : ''}`)
    await Promise.race([aborted(stop), server.closed])
    await server.close()
    endSoon()
    if (server.fault !== null) throw server.fault
  }
}
