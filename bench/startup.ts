import type { Fleet } from './fleet/fleet.ts'
import { binary } from './fleet/server.ts'
import { inTurn, ratioRow, wholeProcess } from './measure.ts'
import type { Row } from './row.ts'

const rounds = 15

/** What a bare client does: one GET by node:http, and prints the answer. */
const bareGet = `
const http = require('node:http')
http.get(process.argv[1] + '/api/hosts?size=500', { headers: { authorization: 'Bearer ' + process.argv[2] } }, (answer) => {
  let text = ''
  answer.on('data', (chunk) => { text += chunk })
  answer.on('end', () => console.log(JSON.parse(text).data.content.length))
})`

/** Whole processes of the command line, from spawn to exit. */
export async function benchStartup(fleet: Fleet): Promise<Row[]> {
  const node = process.execPath
  const env = { ...process.env, RSM_URL: fleet.url, RSM_TOKEN: fleet.token }
  const version = await inTurn(
    rounds,
    () => wholeProcess(node, [binary, '--version']),
    () => wholeProcess(node, ['-e', '0']),
  )
  const list = await inTurn(
    rounds,
    () => wholeProcess(node, [binary, 'hosts', 'list'], env),
    () => wholeProcess(node, ['-e', bareGet, fleet.url, fleet.token]),
  )
  return [
    ratioRow('rsm --version, beside node -e 0', 'ms', version, { atMost: 2 }),
    ratioRow('rsm hosts list, beside a bare GET', 'ms', list, { atMost: 3 }),
  ]
}
