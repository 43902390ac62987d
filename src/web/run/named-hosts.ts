import { useEffect, useState } from 'preact/hooks'
import { fitsQuestion, selectHosts } from '../../cli/names/targets.ts'
import type { Page } from '../../core/protocol/http/common.ts'
import type { Host, HostQuery } from '../../core/protocol/http/hosts.ts'
import { call, said, withQuery } from '../api.ts'

/** So many of the hosts of a selector are read while it is typed: the server says how many there are. */
const firstHosts = 500
/** Somebody who types is waited for, in milliseconds. */
const typingPause = 250

const list = ({ selector, page, size }: HostQuery, signal?: AbortSignal) =>
  call<Page<Host>>('GET', withQuery('api/hosts', { selector, page, size }), signal && { signal })

/** All hosts that a selector names, as the server reads it. */
export const namedHosts = (selector: string): Promise<Host[]> => selectHosts({ hosts: { list } }, selector)

export const fleetSize = async (): Promise<number> => (await list({ size: 1 })).totalElements

/** What a selector names, as far as that is known: the first hosts and their number, or what is wrong with it. */
export type Named = { hosts: readonly Host[]; count: number } | { fault: string }

async function look(selector: string, signal: AbortSignal): Promise<Named> {
  if (!fitsQuestion(selector)) {
    const hosts = await namedHosts(selector)
    return { hosts, count: hosts.length }
  }
  const { content, totalElements } = await list({ selector, size: firstHosts }, signal)
  return { hosts: content, count: totalElements }
}

/** What a selector names while it is typed; undefined without one, and until the server has answered. */
export function useNamed(selector: string): Named | undefined {
  const [named, setNamed] = useState<Named | undefined>()
  useEffect(() => {
    setNamed(undefined)
    if (selector.trim() === '') return undefined
    const leave = new AbortController()
    const tell = (found: Named) => {
      if (!leave.signal.aborted) setNamed(found)
    }
    const timer = setTimeout(() => {
      look(selector.trim(), leave.signal).then(tell, (error: unknown) => tell({ fault: said(error) }))
    }, typingPause)
    return () => {
      clearTimeout(timer)
      leave.abort()
    }
  }, [selector])
  return named
}
