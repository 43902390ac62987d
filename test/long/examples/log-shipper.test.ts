import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, renameSync, writeFileSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { createServer } from 'node:tls'
import test, { type ExecutionContext } from 'ava'
import { cleanEnv, startRsm, temporaryDirectory } from '../../fixtures/rsm.ts'
import { until } from '../../helpers/until.ts'

const page = readFileSync('docs/operate/audit.md', 'utf8')

/** A collector on localhost that receives octet-counted messages over TLS, and keeps their text; rsyslog ends each with a newline. */
async function collector(t: ExecutionContext, home: string) {
  const [certFile, keyFile] = [join(home, 'cert.pem'), join(home, 'key.pem')]
  const request = 'req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost'.split(' ')
  const more = ['-addext', 'subjectAltName=DNS:localhost', '-keyout', keyFile, '-out', certFile]
  execFileSync('openssl', [...request, ...more], { stdio: 'ignore' })
  const collected = { lines: '' }
  const tls = { cert: readFileSync(certFile), key: readFileSync(keyFile) }
  const server = createServer(tls, (socket) => {
    let rest = Buffer.alloc(0)
    socket.on('error', () => undefined)
    socket.on('data', (data) => {
      rest = Buffer.concat([rest, data])
      for (;;) {
        const space = rest.indexOf(' ')
        const end = space + 1 + Number(rest.subarray(0, Math.max(space, 0)).toString())
        if (space < 1 || rest.length < end) return
        const message = rest.subarray(space + 1, end).toString('utf8')
        collected.lines += message.slice(message.indexOf('{'))
        rest = rest.subarray(end)
      }
    })
  })
  server.listen(0, 'localhost')
  await once(server, 'listening')
  t.teardown(() => server.close())
  return { collected, certFile, port: (server.address() as AddressInfo).port }
}

test('rsyslog with the configuration of audit.md ships each line of the audit log over TLS, also after rotation', async (t) => {
  const home = temporaryDirectory(t)
  const data = join(home, 'data')
  const { collected, certFile, port } = await collector(t, home)
  const config = (/^global\(maxMessageSize[^`]*/m.exec(page)?.[0] ?? '')
    .replace('/etc/ssl/certs/ca-certificates.crt', certFile)
    .replace('/var/lib/rsm/server', data)
    .replaceAll('logs.example.org', 'localhost')
    .replace('6514', String(port))
  const configFile = join(home, 'rsyslog.conf')
  writeFileSync(configFile, `global(workDirectory="${home}")\n${config}`)
  const start = async () => {
    const server = startRsm(['server', 'start', '--port', '0', '--data-dir', data], cleanEnv(home))
    t.teardown(() => server.child.kill('SIGKILL'))
    await server.shows('listening on')
    return server
  }
  const log = (name: string) => readFileSync(join(data, 'audit', name), 'utf8')
  const first = await start()
  const shipper = spawn('/usr/sbin/rsyslogd', ['-n', '-f', configFile, '-i', join(home, 'pid')], {
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  t.teardown(() => shipper.kill('SIGKILL'))
  await until('the log has arrived', () => collected.lines === log('audit.log'))
  first.child.kill('SIGTERM')
  await first.done
  renameSync(join(data, 'audit', 'audit.log'), join(data, 'audit', 'audit.log.1'))
  await start()
  await until('both logs have arrived', () => collected.lines === log('audit.log.1') + log('audit.log'))
  t.regex(log('audit.log'), /^\{"id":1,/)
})
