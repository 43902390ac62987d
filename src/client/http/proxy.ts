import { RsmError } from '../../core/errors.ts'

/** Whether NO_PROXY names this host: `*`, `host`, `.domain`, `host:port`. */
function exempt(url: URL, list: string): boolean {
  const host = url.hostname.replace(/^\[|\]$/g, '').toLowerCase()
  const port = url.port || (url.protocol === 'https:' ? '443' : '80')
  return list
    .split(/[\s,]+/)
    .filter((entry) => entry !== '')
    .some((entry) => {
      if (entry === '*') return true
      const [, name = '', wantedPort] = /^(.*?)(?::(\d+))?$/.exec(entry.toLowerCase()) ?? []
      if (wantedPort !== undefined && wantedPort !== port) return false
      const bare = name.replace(/^\*?\./, '')
      return host === bare || host.endsWith(`.${bare}`)
    })
}

/** `HOST:PORT` is an HTTP proxy, as curl has it. A value that is none is not shown: it may hold a password. */
function proxyUrl(text: string): string {
  const url = text.includes('://') ? text : `http://${text}`
  if (URL.canParse(url) && /^https?:$/.test(new URL(url).protocol)) return url
  throw new RsmError('usage', 'HTTPS_PROXY or HTTP_PROXY names no HTTP proxy', {
    hint: 'write it as http://HOST:PORT, or name the server in NO_PROXY',
  })
}

/** The proxy that the environment names for `url` (contract §9: HTTPS_PROXY, HTTP_PROXY, NO_PROXY, in both cases). Errors: `usage`. */
export function proxyFor(url: URL, env: NodeJS.ProcessEnv): string | undefined {
  const proxy =
    url.protocol === 'https:'
      ? (env['https_proxy'] ?? env['HTTPS_PROXY'])
      : (env['http_proxy'] ?? env['HTTP_PROXY'])
  if (proxy === undefined || proxy === '') return undefined
  return exempt(url, env['no_proxy'] ?? env['NO_PROXY'] ?? '') ? undefined : proxyUrl(proxy)
}
