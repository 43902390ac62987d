#!/usr/bin/env node
// Runs a command beside a new server with one host: RSM_URL and RSM_TOKEN are in the command's environment.
// Ends with the command's exit code. Needs `npm run build`.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startServer } from '../dist/src/server/main.js'

const [command, ...args] = process.argv.slice(2)
if (command === undefined) throw new Error('usage: with-server.js COMMAND [ARGUMENT…]')
const dataDir = await mkdtemp(join(tmpdir(), 'rsm-with-server-'))
const adminPassword = 'a password for this run only'
const server = await startServer({
  host: '127.0.0.1',
  port: 0,
  dataDir,
  heartbeatInterval: 30,
  metricsInterval: 60,
  wsIdleTimeout: 300,
  adminPassword,
  insecureHttp: false,
  logLevel: 'WARN',
})
let token = ''

async function post(path, body) {
  const headers = { 'content-type': 'application/json', ...(token && { authorization: `Bearer ${token}` }) }
  const response = await fetch(`${server.url}${path}`, {
    method: 'POST',
    headers,
    body: JSON.stringify(body),
  })
  if (!response.ok) throw new Error(`POST ${path}: ${response.status} ${await response.text()}`)
  return (await response.json()).data
}

try {
  token = (await post('/api/auth/login', { username: 'admin', password: adminPassword })).token
  await post('/api/hosts', { hostname: 'web1', ip: '10.0.0.11' })
  const env = { ...process.env, RSM_URL: server.url, RSM_TOKEN: token }
  const child = spawn(command, args, { stdio: 'inherit', env })
  const [code] = await once(child, 'exit')
  process.exitCode = code ?? 1
} finally {
  await server.close()
  await rm(dataDir, { recursive: true, force: true })
}
