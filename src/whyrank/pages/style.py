"""How a page looks: light or dark as its reader's screen is, narrow or wide, and on paper."""

from __future__ import annotations

SERIES = 8  # colours that can be told apart; after that lines are dashed

STYLE = """
:root{color-scheme:light dark;--bg:#fcfcfb;--fg:#1b1c1e;--dim:#5d6168;--rule:#dcdee2;--card:#f3f4f5;
--good:#0b7a4b;--bad:#b3331f;--warn:#8a5a00;--link:#0b57a4;
--s0:#1b1c1e;--s1:#0072b2;--s2:#d55e00;--s3:#00875f;--s4:#b0508a;--s5:#a67700;--s6:#2f93c9;--s7:#7a5cc0}
@media (prefers-color-scheme:dark){:root{--bg:#15171a;--fg:#e8e9eb;--dim:#a0a5ad;--rule:#363a41;--card:#1f2227;
--good:#4cc38a;--bad:#ff8a70;--warn:#e5b454;--link:#7cb7f2;
--s0:#f2f3f5;--s1:#5cb3ec;--s2:#ff9152;--s3:#3fcf9f;--s4:#e58fc4;--s5:#e6b93c;--s6:#9ad7f7;--s7:#b9a2f2}}
*{box-sizing:border-box}
body{margin:0;background:var(--bg);color:var(--fg);font:16px/1.5 system-ui,"Segoe UI",Roboto,"Noto Sans",sans-serif;
overflow-wrap:anywhere}
main{max-width:64rem;margin:0 auto;padding:1.5rem 1rem 4rem}
h1{font-size:1.7rem;line-height:1.2;margin:.5rem 0}
h2{font-size:1.3rem;margin:2.8rem 0 .6rem;padding-top:.6rem;border-top:1px solid var(--rule)}
h3{font-size:1.05rem;margin:1.8rem 0 .4rem}
h4{font-size:.95rem;margin:1rem 0 .3rem}
p,ul,dl{margin:.5rem 0;max-width:46rem}
ul{padding-left:1.3rem}
a{color:var(--link)}
nav ul{list-style:none;padding:0;display:flex;flex-wrap:wrap;gap:.2rem 1rem;max-width:none}
.dim{color:var(--dim)}
.small{font-size:.875rem}
.good{color:var(--good)}
.bad{color:var(--bad)}
.warn{color:var(--warn)}
.notice{border-left:3px solid var(--warn);background:var(--card);padding:.5rem .8rem;margin:.6rem 0;max-width:46rem}
dl.facts{display:grid;grid-template-columns:max-content 1fr;gap:.1rem 1rem}
dl.facts dt{color:var(--dim)}
dl.facts dd{margin:0}
.wide{overflow-x:auto;margin:.6rem 0}
table{border-collapse:collapse;font-size:.9rem;overflow-wrap:break-word;font-variant-numeric:tabular-nums}
caption{text-align:left;color:var(--dim);padding-bottom:.3rem}
th,td{padding:.28rem .7rem;border-bottom:1px solid var(--rule);text-align:left;vertical-align:top}
thead th{border-bottom:2px solid var(--rule);color:var(--dim);font-weight:600;vertical-align:bottom}
th.n,td.n{text-align:right;white-space:nowrap}
td{min-width:2rem}
tbody th,td.w{min-width:6.5rem;max-width:26rem}
td.w{min-width:12rem}
tr.ours th,tr.ours td{font-weight:650;background:var(--card)}
tbody th{font-weight:500}
figure{margin:.8rem 0;max-width:44rem}
figcaption{color:var(--dim);font-size:.875rem;margin-bottom:.3rem}
.bars{display:grid;grid-template-columns:minmax(6rem,max-content) minmax(8rem,1fr) max-content;gap:.3rem .8rem;
align-items:center;font-size:.9rem;font-variant-numeric:tabular-nums}
.bars svg{width:100%;height:1.1rem;display:block;overflow:visible}
.bars .v{text-align:right}
.track{fill:var(--card)}
.bars rect:not(.track){opacity:.62}
.whisker{stroke:var(--fg);stroke-width:1.5;fill:none}
.mark{stroke:var(--warn);stroke-width:2}
.chart{width:100%;max-width:33rem;height:auto;display:block;font-size:12px}
.chart text{fill:var(--dim)}
.grid{stroke:var(--rule);stroke-width:1}
.zero{stroke:var(--dim);stroke-width:1}
.line{fill:none;stroke-width:2;stroke-linejoin:round}
.line.strong{stroke-width:3.5}
.d1{stroke-dasharray:6 3}
.d2{stroke-dasharray:2 3}
.legend{list-style:none;padding:0;display:flex;flex-wrap:wrap;gap:.1rem 1.1rem;font-size:.875rem;max-width:44rem}
.legend svg{width:1.8em;height:.8em;vertical-align:middle;margin-right:.35em}
details{border:1px solid var(--rule);border-radius:.4rem;margin:.5rem 0;padding:0 .8rem}
summary{cursor:pointer;padding:.5rem 0;font-weight:500}
details[open]{padding-bottom:.7rem}
pre{background:var(--card);padding:.6rem .8rem;border-radius:.3rem;overflow-x:auto;font:.82rem/1.45 ui-monospace,
"SFMono-Regular",Menlo,Consolas,"DejaVu Sans Mono",monospace;white-space:pre-wrap;overflow-wrap:anywhere;margin:.3rem 0}
code{font:.9em ui-monospace,"SFMono-Regular",Menlo,Consolas,"DejaVu Sans Mono",monospace}
blockquote{margin:.3rem 0;padding-left:.8rem;border-left:3px solid var(--rule)}
footer{margin-top:3rem;color:var(--dim);font-size:.85rem}
@media (max-width:34rem){body{font-size:15px}main{padding:1rem .75rem 3rem}h1{font-size:1.4rem}
.bars{grid-template-columns:1fr max-content}.bars .l{grid-column:1/-1;margin-top:.3rem}
th,td{padding:.25rem .45rem}dl.facts{grid-template-columns:1fr}dl.facts dd{margin-bottom:.3rem}}
@media print{:root{color-scheme:light;--bg:#fff;--fg:#000;--dim:#444;--card:#f4f4f4;--rule:#bbb;--s0:#000;--s1:#0072b2;
--s2:#d55e00;--s3:#00875f;--s4:#b0508a;--s5:#a67700;--s6:#2f93c9;--s7:#7a5cc0;--good:#0b7a4b;--bad:#b3331f}
body{font-size:10.5pt}main{max-width:none;padding:0}.wide{overflow:visible}figure,tr,pre{break-inside:avoid}
details::details-content{content-visibility:visible;display:block}h2,h3,h4{break-after:avoid}*{print-color-adjust:exact}}
""" + "".join(f".f{n}{{fill:var(--s{n})}}.k{n}{{stroke:var(--s{n})}}" for n in range(SERIES))
