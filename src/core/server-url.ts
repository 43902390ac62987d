import { RsmError } from './errors.ts'

/** A bare `HOST` or `HOST:PORT` is the likeliest slip; which scheme it has can't be guessed, for a password follows. */
function urlHint(text: string): string {
  return /^[\w.-]+(:\d+)?$/.test(text)
    ? `write it as https://${text}, or http://${text} where it has no TLS`
    : 'write it as http://HOST:18080 or https://HOST'
}

/** The URL as it is stored and compared: lower-case host, no slash at the end. */
export function normalUrl(text: string): string {
  // One that holds a password is not repeated: errors end up in logs.
  const shown = text.includes('@') ? '...' : text
  let url: URL
  try {
    url = new URL(text)
  } catch {
    throw new RsmError('usage', `not a URL: ${shown}`, { hint: urlHint(text) })
  }
  if (url.protocol !== 'http:' && url.protocol !== 'https:')
    throw new RsmError('usage', `a server's URL begins with http:// or https://: ${shown}`, {
      hint: urlHint(text),
    })
  if (url.username !== '' || url.password !== '')
    throw new RsmError('usage', "a server's URL holds no password", { hint: 'log in: rsm login URL' })
  return (url.origin + url.pathname).replace(/(?<!\/)\/+$/, '')
}
