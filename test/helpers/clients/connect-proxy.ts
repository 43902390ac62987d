import { once } from 'node:events'
import { createServer } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import type { ExecutionContext } from 'ava'

interface ConnectProxy {
  readonly port: number
  /** Each requested tunnel. */
  readonly tunnels: { readonly to: string | undefined; readonly authorization: string | undefined }[]
}

/** A proxy (RFC 9110 §9.3.6) whose tunnels all lead to the server at `url`. */
export async function startConnectProxy(t: ExecutionContext, url: string): Promise<ConnectProxy> {
  const tunnels: ConnectProxy['tunnels'] = []
  const proxy = createServer()
  proxy.on('connect', ({ url: to, headers }, socket) => {
    tunnels.push({ to, authorization: headers['proxy-authorization'] })
    const onward = connect(Number(new URL(url).port), '127.0.0.1', () => {
      socket.write('HTTP/1.1 200 ok\r\n\r\n')
      onward.pipe(socket).pipe(onward)
    })
    onward.on('error', () => socket.destroy())
    socket.on('error', () => onward.destroy())
  })
  proxy.listen(0, '127.0.0.1')
  await once(proxy, 'listening')
  t.teardown(() => proxy.close())
  return { port: (proxy.address() as AddressInfo).port, tunnels }
}
