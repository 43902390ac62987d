import createClient from 'openapi-fetch'
import type { components, paths } from './api.d.ts'

type Host = components['schemas']['Host']

const { RSM_URL: baseUrl, RSM_TOKEN: token } = process.env
if (!baseUrl || !token) throw new Error('set RSM_URL and RSM_TOKEN')

const client = createClient<paths>({ baseUrl, headers: { authorization: `Bearer ${token}` } })

/** All hosts, page by page. */
async function* hosts(): AsyncGenerator<Host> {
  for (let page = 0, pages = 1; page < pages; page++) {
    const { data, error } = await client.GET('/api/hosts', { params: { query: { page, size: 100 } } })
    if (error) throw new Error(`${error.code}: ${error.message}`)
    pages = data.data.totalPages
    yield* data.data.content
  }
}

const { data: me, error } = await client.GET('/api/auth/me')
if (error) throw new Error(`${error.code}: ${error.message}`)
console.log(`logged in as ${me.data.username}, ${me.data.role}`)
for await (const { hostname, ip, status } of hosts()) console.log(`${hostname}\t${ip}\t${status}`)
