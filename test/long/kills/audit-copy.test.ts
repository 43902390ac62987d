import { readFileSync } from 'node:fs'
import { mkdir, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import test from 'ava'
import { cleanEnv, runRsm, startRsm, temporaryDirectory } from '../../fixtures/rsm.ts'
import { until } from '../../helpers/until.ts'

test('--audit-copy survives kill -9 and a target that is away; status, metrics and doctor show how far it is', async (t) => {
  const home = temporaryDirectory(t)
  const data = join(home, 'data')
  const directory = join(home, 'logs')
  const file = join(directory, 'audit.jsonl')
  await mkdir(directory)
  const env = cleanEnv(home, {
    RSM_ADMIN_PASSWORD: 'correct horse',
    RSM_AUDIT_COPY: `file:${file}`,
    RSM_METRICS_OPEN: 'yes',
    RSM_DATA_DIR: data,
  })
  const start = async () => {
    const server = startRsm(['server', 'start', '--port', '0', '--log-level', 'INFO'], env)
    t.teardown(() => server.child.kill('SIGKILL'))
    await server.shows('listening on')
    const url = /listening on (\S+)/.exec(server.out.stdout)?.[1] ?? ''
    return { ...server, url }
  }
  const refusals = async (url: string, count: number) => {
    const login = { method: 'POST', body: '{}', headers: { 'content-type': 'application/json' } }
    for (let at = 0; at < count; at++) await (await fetch(`${url}/api/auth/login`, login)).text()
  }
  const isWhole = () => {
    const log = readFileSync(join(data, 'audit', 'audit.log'), 'utf8')
    return log === readFileSync(file, 'utf8') && log.length > 0
  }
  let server = await start()
  for (let round = 0; round < 3; round++) {
    await refusals(server.url, 15)
    server.child.kill('SIGKILL')
    await server.done
    server = await start()
  }
  await until('the copy is whole', isWhole)
  const verified = await runRsm(['audit', 'verify', '--file', file], env)
  t.is(verified.exit, 0, verified.stderr)
  const status = await runRsm(['server', 'status'], env)
  t.regex(status.stdout, /^audit copy +file:\S+audit\.jsonl: up to date$/m, status.stderr)

  await rename(directory, `${directory}.away`)
  await refusals(server.url, 2)
  const waiting = async () =>
    /^rsm_audit_copy_waiting (\d+)$/m.exec(await (await fetch(`${server.url}/metrics`)).text())
  await until('they wait', async () => Number((await waiting())?.[1]) >= 2)
  const away = await runRsm(['server', 'status'], env)
  t.regex(away.stdout, /^audit copy .*: \d+ entries behind, for \d+ s: no directory can be made there$/m)
  const doctor = await runRsm(['server', 'doctor', '--json'], env)
  const { findings } = JSON.parse(doctor.stdout) as { findings: { code: string; message: string }[] }
  t.regex(
    findings.find(({ code }) => code === 'audit-copy')?.message ?? '',
    /^the copy of the audit log to file:/,
  )
  t.is((await fetch(`${server.url}/api/ready`)).status, 200)

  // Who rotates it may send a signal.
  server.child.kill('SIGHUP')
  await mkdir(directory)
  await until('the rest has come', async () => Number((await waiting())?.[1]) === 0)
  server.child.kill('SIGTERM')
  const { exit } = await server.done
  t.is(exit, 0)
  const both = readFileSync(join(`${directory}.away`, 'audit.jsonl'), 'utf8') + readFileSync(file, 'utf8')
  t.is(both, readFileSync(join(data, 'audit', 'audit.log'), 'utf8'), 'the stop is in it too')
  await rm(directory, { recursive: true })
})
